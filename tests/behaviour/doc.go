// Package behaviour has one script that every client passes: gws's own,
// coder/websocket, and ws from npm, in both codecs, with and without compression,
// over TCP and TLS, against the program pulse-node.
//
// The script is data, in script.json: a list of steps, each a list of who, what and
// what with. Who is a client of that name. What is one of
//
//	connect            opens a WebSocket; a client that is gone may come again
//	send FRAME         sends a frame
//	fragments FRAME    sends a frame in three fragments
//	raw TEXTS          sends the text in the client's codec; that of msgpack is hex
//	await FRAME        the first frame of its t (and room, and id), of those not yet taken, is like it
//	ping TEXT          pings by WebSocket and waits for the pong
//	close CODE         closes, and waits for the end
//	closed CODE        the node closes with this code
//	cut                drops the connection without a word
//
// and besides "set", a name, a text and how often it is repeated; "times", how often,
// and steps in which "$i" counts from 1; "node", "drain" tells the node to end.
//
// In a frame that is awaited only what is written counts, "*" is anything, and
// "$name" is the same wherever it is written, also in what is sent. The drivers know
// $alice and $bob (tokens), $codec and $compression.
//
// The clients' drivers are script_test.go with gws_test.go and coder_test.go, and
// tests/node/behaviour.mjs.
package behaviour
