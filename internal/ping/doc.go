// Package ping measures round trips between a host and its DPU, over the control channel or over Comch producers and
// consumers, and shows each side's text on the other.
//
//	Run ── meet the peer ── conversation ── two service.Session
//	                             └── the control channel, and a fastPath for each
//
// Both sides call Run. Each is a command that makes requests as to a daemon, and a daemon for the other one: a text,
// then its PINGs, those of the DPU first, then an empty text. A conversation owns both sessions: one goroutine receives
// a message, passes it to the session that it is for, and makes this side's next request. This package must not format
// anything for a user, and does not know why a text is sent.
package ping
