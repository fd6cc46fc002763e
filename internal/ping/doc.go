// Package ping measures round trips between a host and its DPU, over the control channel or over Comch producers and
// consumers, and shows each side's text on the other.
//
//	Run ── meet the peer ── conversation ── negotiate.PingSession
//	                             └── inbox: the control channel, or that and a fastPath
//
// Both sides call Run. The messages and their order are in package negotiate. A conversation owns the session and the
// inbox: one goroutine receives a message, passes it to the session, and sends what the session wants to be sent. This
// package must not format anything for a user, and does not know why a text is sent.
package ping
