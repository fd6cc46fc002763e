// Package status tells what a running daemon does: the daemon's unix socket, which gives one document to each process
// that connects, and the command that reads and prints it.
//
// Only root and the daemon's own user get an answer. The package must not change what the daemon does.
package status
