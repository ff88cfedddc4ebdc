// Package node holds the tests that meet the program pulse-node from Node.js: a
// client over the npm packages ws and @msgpack/msgpack that joins, is killed and
// resumes; the demo page in the windows of a browser, with a network between them
// that fails; and the page's own client against a scripted server. They need
// node, npm and chromium, and are skipped, with the reason, without them. The driver
// of tests/behaviour is here as well, beside the packages that it needs.
package node
