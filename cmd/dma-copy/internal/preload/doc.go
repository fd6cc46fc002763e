// Package preload maps the program's code and constants when the process starts. Otherwise the first access to each
// part of them is a page fault. A start has some 170 of these, and in a virtual machine each can take 20 microseconds:
// there this takes a sixth off a command that does nothing else.
//
// What is not in the page cache is read from the disk as a whole; a start otherwise reads two thirds of it in parts.
//
// It is enough to import the package. Its work is done before Go's runtime starts, which is why it is C; without cgo
// the package does nothing.
package preload
