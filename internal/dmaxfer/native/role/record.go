package role

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Record is what a role knows about an entry of the transfer. The session keeps it, from the announcement of the entry
// until another one takes its place; there is no other table of entries.
type Record interface {
	// Path returns the path of the entry for messages: below the root, or its name as long as the directory is not
	// known. It may be called by any goroutine.
	Path() string

	// Motion returns what the owner of the transfer notes about the entry at each heartbeat.
	Motion() *Motion
}

// Motion counts for how many heartbeats nothing has happened to an entry.
type Motion struct {
	phase native.OpenPhase // 0 before the first heartbeat
	acked uint64
	still int // heartbeats
}

// Beat is called at each heartbeat, with the state of the entry in the session.
func (m *Motion) Beat(phase native.OpenPhase, acked uint64) {
	if m.phase == phase && m.acked == acked {
		m.still++
		return
	}
	*m = Motion{phase: phase, acked: acked}
}

// Still returns the number of heartbeats since the entry was first seen as it is now.
func (m *Motion) Still(phase native.OpenPhase, acked uint64) int {
	if m.phase == phase && m.acked == acked {
		return m.still
	}
	return 0
}
