// Package node holds the tests that meet the program pulse-node from Node.js: a
// client over the npm packages ws and @msgpack/msgpack that joins, is killed and
// resumes, and the demo page in two windows of a browser. They need node, npm and
// chromium, and are skipped, with the reason, without them.
package node
