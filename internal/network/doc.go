// Package network connects a command (the client) with a daemon (the server) on another machine, over TCP.
//
//	client                                                       server
//	Dial ──── control connection: TLS 1.3 of package secure ───► Listener, Accept
//	Memory ── data connections, one for each lane: TLS 1.3 ────► the same port
//
// A Control is the channel below package secure: every message is one TLS record, and the header of the record is what
// separates it from the next one. The wire has TLS over TCP and nothing else, apart from the data connections
// of the path tcp, which leave TLS when it has authenticated them. The client makes all connections, so the server
// needs one open port, and the client none.
//
// Before a peer has proved its key it can cause little: a Listener has a small number of such connections, each for ten
// seconds. A data connection is accepted from a key that has a control connection, if it names that connection by a
// secret of it.
package network
