// Package inode converts what is copied of a file besides its content between the three forms that it has: an Info of
// package disk on the sender, an Entry and the METADATA of the native protocol, and the Metadata of package disk on the
// receiver. Its functions may be called concurrently.
package inode
