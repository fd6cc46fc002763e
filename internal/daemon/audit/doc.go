// Package audit writes one JSON line for each session and request of a daemon: who did what, to which file, how much,
// and with which result. docs/audit.schema.json describes the lines.
//
// A service.Observer must not block, so a goroutine writes the lines, from a bounded queue. Lines that find the queue
// full, or cannot be written, are counted, and the number is the next line that is written. The package must not decide
// what is permitted.
package audit
