// Command soak tries a deployment of three nodes on Redis for minutes: clients in many rooms and
// publishers who number their events, while the server is cut off, frozen, bounced, emptied
// and failed over, and nodes are killed and frozen. Everybody's history is recorded, and
// package history judges all of them.
//
//	go run ./soak -duration 5m -clients 200 -rooms 20 -seed 7
//
// It prints the seed, a line for each fault, and a report; it exits with 1 when a history
// shows a fault of the deployment, and keeps the nodes' logs then. It runs redis-server and
// pulse-node by itself, on free ports of the loopback, and needs Go to build the latter.
//
// A run is a crowd (clients, with what they hear), a site (where they connect) and faults
// that are dealt by the seed like cards: all of them before any comes again.
package main
