package native

import (
	"iter"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// OpenPhase is how far an undecided entry has come. Either side can take the next step, and the phase says which.
type OpenPhase = phase

// The phases of an OpenEntry, in their order.
const (
	PhaseUnanswered = unanswered // the receiver answers, or commits what is not a file
	PhaseNeeded     = needed     // the sender sends its content
	PhaseAsked      = asked      // the sender sends its digest
	PhaseSummed     = summed     // the receiver compares digests
	PhaseEnded      = ended      // the receiver commits it
)

var phaseNames = [...]string{
	decided: "decided", unanswered: "unanswered", needed: "needed", asked: "asked", summed: "summed", ended: "ended",
}

// String returns the name of the phase in docs/internals/protocol/native.md.
func (p phase) String() string { return phaseNames[p] }

// OpenEntry describes an undecided entry to the user.
type OpenEntry struct {
	Number    uint32
	Kind      wire.EntryKind
	Phase     OpenPhase
	Size      uint64 // bytes, if SizeKnown
	SizeKnown bool
	Acked     uint64 // bytes that the receiver has acknowledged as good; of a file in a pack 0 until all of it is
	Record    any    // that was attached to it
}

// OpenEntries returns the undecided entries of this transfer, the oldest first. The session must not be used during
// the iteration.
func (n *Session) OpenEntries() iter.Seq[OpenEntry] {
	return func(yield func(OpenEntry) bool) {
		t := &n.entries
		for number := t.oldest; number != t.next; number++ {
			e := t.at(number)
			if e.phase == decided {
				continue
			}
			open := OpenEntry{
				Number: number, Kind: e.kind, Phase: e.phase, Size: e.size, SizeKnown: e.sizeKnown(), Acked: e.acked,
				Record: e.record,
			}
			if !yield(open) {
				return
			}
		}
	}
}

// Attach keeps what the caller records about an announced entry, until another entry takes its place in the session.
func (n *Session) Attach(entry uint32, record any) { n.entries.at(entry).record = record }

// Record returns what was attached to an entry, also to one that has been decided meanwhile. It is nil for an entry
// that was not announced, or whose place another one has taken.
func (n *Session) Record(entry uint32) any {
	t := &n.entries
	if back := t.next - entry; back == 0 || back > min(t.next, uint32(len(t.ring))) {
		return nil
	}
	return t.at(entry).record
}

// Records returns what was attached to the entries that have a place in the session, the oldest first, decided or not.
// The session must not be used during the iteration.
func (n *Session) Records() iter.Seq[any] {
	return func(yield func(any) bool) {
		t := &n.entries
		for number := t.next - min(t.next, uint32(len(t.ring))); number != t.next; number++ {
			if r := t.at(number).record; r != nil && !yield(r) {
				return
			}
		}
	}
}

// Acknowledged returns how often slots of the session were acknowledged.
func (n *Session) Acknowledged() uint64 { return n.slots.acknowledged }

// HasWindow reports whether WINDOW has been sent or received.
func (n *Session) HasWindow() bool { return n.window }
