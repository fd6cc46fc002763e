// Package ping lets two commands of this program, one on each side, make round trips over Comch: to measure them, to
// show each side's text on the other, and to ask each other questions.
//
//	Meet ── Conversation ──┬─ Run: texts, and round trips over the control channel or a fastPath
//	                       └─ Turns ── Ask: a question ──► the peer's Handler, which answers in pieces
//
// Each side is a command that makes requests as to a daemon while it is its turn, and a daemon for the other one after
// that: the DPU first, then the host. Each turn has a session of its own. This package must not format anything for a
// user, and does not know why a text is sent or what is asked.
package ping
