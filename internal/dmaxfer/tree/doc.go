// Package tree finds what a sender has to send of a directory: Walk lists the entries of a tree in the order of the
// protocol, and Entry.Open opens files while several lanes read them. Filter selects entries
// by gitignore patterns. The package must not know a peer, a device or a protocol state.
//
// The order is depth first, the root before all others, and siblings sorted bytewise by name. Every directory is opened
// from the one that contains it, so other processes that exchange directories and symlinks cannot lead the walk out of
// the tree. Memory and open descriptors are bounded for any number of entries and any depth.
package tree
