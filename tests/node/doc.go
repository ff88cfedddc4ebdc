// Package node holds the tests that meet the program pulse-node from Node.js: a
// client over the npm packages ws and @msgpack/msgpack that joins, is killed and
// resumes. They need node and npm, and are skipped, with the reason, without them.
package node
