// Package share has the directories that a daemon offers to its peers: their names, rights and limits (Share), the form
// in which a command names what is in them (Remote), and access to their content that never leaves them (Opened). It
// must not know a peer or a protocol state.
package share
