package wire

import (
	"bytes"
	"math"
)

// Order checks that entries are announced depth first and that siblings are sorted by name. It has the path of
// the last entry: the previous sibling of a new one is a component of it. Its memory, which the first entry below a
// directory allocates, is bounded by MaxPath.
type Order struct {
	Message Type      // that announces them
	Next    uint32    // number of the next entry
	kind    EntryKind // of the last entry
	path    []byte    // of the last entry, its components joined by '/'
	ends    []uint16  // by depth - 1: where the component ends in path
}

func (o *Order) Reset() { o.Next, o.kind, o.path, o.ends = 0, 0, o.path[:0], o.ends[:0] }

// Check checks an entry, which is valid by itself, against those before it.
func (o *Order) Check(e *Entry) error {
	depth := len(o.ends) // of the last entry
	switch {
	case o.Next == math.MaxUint32:
		return Malformed(o.Message, "more than %d entries", uint32(math.MaxUint32))
	case (e.Depth == 0) != (o.Next == 0):
		return Malformed(o.Message, "entry %d at depth %d", o.Next, e.Depth)
	case e.Depth == 0:
		return nil
	case e.Depth > depth+1 || e.Depth == depth+1 && o.kind != EntryDirectory:
		return Malformed(o.Message, "an entry at depth %d after a %s at depth %d", e.Depth, o.kind, depth)
	case e.Depth <= depth && bytes.Compare(o.component(e.Depth), e.Name) >= 0:
		return Malformed(o.Message, "entry %d does not follow its sibling in the order of the names", o.Next)
	case o.parentEnd(e.Depth)+min(e.Depth-1, 1)+len(e.Name) > MaxPath:
		return Malformed(o.Message, "a path of more than %d bytes", MaxPath)
	}
	return nil
}

// Add makes e, which check has accepted, the last entry.
func (o *Order) Add(e *Entry) {
	o.Next++
	o.kind = e.Kind
	if e.Depth == 0 {
		return
	}
	if o.path == nil {
		o.path, o.ends = make([]byte, 0, MaxPath+MaxName+1), make([]uint16, 0, MaxLevel)
	}
	o.path, o.ends = o.path[:o.parentEnd(e.Depth)], o.ends[:e.Depth-1]
	if e.Depth > 1 {
		o.path = append(o.path, '/')
	}
	o.path = append(o.path, e.Name...)
	o.ends = append(o.ends, uint16(len(o.path)))
}

// component returns the name of the last entry, or of its directory, at a depth from 1.
func (o *Order) component(depth int) []byte {
	return o.path[o.parentEnd(depth)+min(depth-1, 1) : o.ends[depth-1]]
}

// parentEnd returns the length of the path of the directory of an entry at a depth from 1.
func (o *Order) parentEnd(depth int) int {
	if depth < 2 {
		return 0
	}
	return int(o.ends[depth-2])
}
