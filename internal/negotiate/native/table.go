package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// phase is how far an undecided entry has come. It says whose turn it is: no message about the entry can cross
// another, except for the receiver's FAILURE.
type phase uint8

const (
	decided    phase = 0
	unanswered phase = 1 // announced; the receiver answers, or commits what is not a file
	needed     phase = 2 // the sender sends METADATA, and either CHUNKS and END or a PACK
	asked      phase = 3 // the sender sends SUM
	summed     phase = 4 // the receiver answers again
	ended      phase = 5 // END or PACK was sent; the receiver commits
)

// openEntry is an entry in the table.
type openEntry struct {
	kind   wire.EntryKind
	flags  wire.EntryFlags
	phase  phase
	failed bool // this side has sent FAILURE; the entry is decided when the peer's arrives
	exists bool // a decided directory that has not failed
	marked bool // named by the list that is being checked
	again  bool // was in a pack that arrived damaged
	packed bool // in a pack in flight, which keeps its place in the table
	next   uint16

	size     uint64 // bytes, if known
	resume   uint64 // claims lie below
	claimed  uint64 // bytes of all claims
	pending  uint64 // bytes of the records in flight
	acked    uint64 // bytes acknowledged as good
	metadata assembly
	record   any // the caller's
}

// covered returns the number of bytes in flight or acknowledged, which no further record may cover.
func (e *openEntry) covered() uint64 { return e.pending + e.acked }

func (e *openEntry) chunked() bool { return e.flags.Has(wire.EntryChunked) }

func (e *openEntry) sizeKnown() bool { return e.phase == ended || !e.flags.Has(wire.EntrySizeUnknown) }

// complete reports whether all metadata has been transferred.
func (e *openEntry) complete() bool {
	return !e.flags.Has(wire.EntryHasMetadata) || e.metadata.total > 0 && e.metadata.complete()
}

// entryTable is a ring of the entries from the oldest undecided one to the newest.
type entryTable struct {
	ring         []openEntry // its length is a power of two
	oldest, next uint32
	undecided    int
	unanswered   int    // files without a final answer, and not failed on this side
	unconfirmed  int    // ended, and not failed on this side
	bytes        uint64 // of all files, also of decided ones
	directories  uint32 // decided, and not failed
	counts       Counts
}

// newEntryTable returns a table for that many undecided entries, which is a power of two.
func newEntryTable(open int) entryTable { return entryTable{ring: make([]openEntry, open)} }

func (t *entryTable) reset() { *t = entryTable{ring: t.ring} }

func (t *entryTable) room() int { return len(t.ring) - int(t.next-t.oldest) }

func (t *entryTable) at(number uint32) *openEntry { return &t.ring[t.place(number)] }

// place returns the index of an entry in ring.
func (t *entryTable) place(number uint32) uint16 { return uint16(number & uint32(len(t.ring)-1)) }

// inTable reports whether the entry has a place in the table, even if it is decided.
func (t *entryTable) inTable(number uint32) bool { return number-t.oldest < t.next-t.oldest }

// open returns an undecided entry, or nil.
func (t *entryTable) open(number uint32) *openEntry {
	if e := t.at(number); t.inTable(number) && e.phase != decided {
		return e
	}
	return nil
}

func (t *entryTable) add(e *wire.Entry) {
	added := t.at(t.next)
	*added = openEntry{kind: e.Kind, flags: e.Flags, phase: unanswered, size: e.Size}
	t.count(added, 1)
	t.next++
	t.undecided++
	t.bytes += e.Size
}

// count adds to the counter that an entry belongs to in its phase.
func (t *entryTable) count(e *openEntry, by int) {
	switch {
	case e.failed:
	case e.phase == ended:
		t.unconfirmed += by
	case e.kind == wire.EntryFile && (e.phase == unanswered || e.phase == asked || e.phase == summed):
		t.unanswered += by
	}
}

// change changes the phase of an undecided entry.
func (t *entryTable) change(e *openEntry, to phase) {
	t.count(e, -1)
	e.phase = to
	t.count(e, 1)
	if to == decided {
		t.undecided--
		t.advance()
	}
}

// advance makes room. The place of a file in a pack in flight is kept, because the pack refers to it.
func (t *entryTable) advance() {
	for t.oldest != t.next && t.at(t.oldest).phase == decided && !t.at(t.oldest).packed {
		t.oldest++
	}
}

// fail counts the failure of an undecided entry, which waits for the peer's FAILURE.
func (t *entryTable) fail(e *openEntry) {
	t.count(e, -1)
	e.failed = true
	t.counts.Failed++
}

// decide counts an entry that the receiver has by now.
func (t *entryTable) decide(e *openEntry, count *uint32) {
	*count++
	if e.kind == wire.EntryDirectory {
		t.directories++
		e.exists = true
	}
	t.change(e, decided)
}

// failLate fails a directory that is decided, because its mode and times are set after its content. It reports whether
// there is such a directory: for one that has left the table, it knows only their number.
func (t *entryTable) failLate(number uint32) bool {
	if number >= t.next || t.directories == 0 {
		return false
	}
	if t.inTable(number) {
		e := t.at(number)
		if !e.exists {
			return false
		}
		e.exists = false
	}
	t.directories--
	t.counts.Failed++
	return true
}

// slot is one slot of the window.
type slot struct {
	inFlight bool // announced and not acknowledged yet
	marked   bool // named by the list that is being checked
	packed   bool // has a pack; otherwise a record
	entry    uint32
	length   uint64 // bytes of the record
	first    uint16 // with packed: place in the entry table of the first file
}

// slotTable tracks which slots are in flight. Both sides keep the same table.
type slotTable struct {
	slots        []slot
	outstanding  int    // number of slots in flight
	acknowledged uint64 // how often slots were acknowledged
}

func newSlotTable(depth uint32) slotTable { return slotTable{slots: make([]slot, depth)} }

// vacant returns a slot for a new record or pack.
func (t *slotTable) vacant(message wire.Type, number uint32) (*slot, error) {
	if uint64(number) >= uint64(len(t.slots)) {
		return nil, wire.Malformed(message, "slot %d of %d", number, len(t.slots))
	}
	if t.slots[number].inFlight {
		return nil, wire.WrongTurn(message, "a slot in flight")
	}
	return &t.slots[number], nil
}

// inFlight returns a slot that may be acknowledged.
func (t *slotTable) inFlight(number uint32) (*slot, error) {
	if uint64(number) >= uint64(len(t.slots)) {
		return nil, wire.Malformed(wire.TypeAcks, "slot %d of %d", number, len(t.slots))
	}
	if s := &t.slots[number]; s.inFlight && !s.marked {
		return s, nil
	}
	return nil, wire.WrongTurn(wire.TypeAcks, "an acknowledgement for a slot not in flight")
}
