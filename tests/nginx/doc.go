// Package nginx runs pulse-node as docs/operations.md tells operators to: real
// processes, with the files of deploy/, behind the nginx of the distribution, which
// ends TLS. What it starts listens on addresses that are this process's own, and ends
// with its test.
package nginx
