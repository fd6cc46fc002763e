package tree

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// ErrRecordFull is the error of the Listing of a Record that has reached its limit.
var ErrRecordFull = errors.New("too many entries to remember")

// Record has the kinds and paths of entries in the order of Walk. The methods of a nil Record that transfers call do
// nothing.
type Record struct {
	limit   int    // bytes
	entries []byte // of each: depth, kind and length of the name as varints, and the name
	count   int64
	full    bool
}

// NewRecord returns a Record that takes about so many bytes at most, 3 for an entry besides its name.
func NewRecord(limit int) *Record { return &Record{limit: limit} }

// add adds an entry. A hard link is a file. The root, at depth 0, is left out.
func (r *Record) add(kind wire.EntryKind, depth int, name string) {
	if r == nil || depth == 0 || r.full {
		return
	}
	if kind == wire.EntryHardLink {
		kind = wire.EntryFile
	}
	if r.full = len(r.entries)+len(name) > r.limit; r.full {
		r.entries = nil
		return
	}
	r.count++
	for _, n := range []int{depth, int(kind), len(name)} {
		r.entries = binary.AppendUvarint(r.entries, uint64(n))
	}
	r.entries = append(r.entries, name...)
}

func (r *Record) reset() {
	if r != nil {
		*r = Record{limit: r.limit}
	}
}

// Len returns the number of entries.
func (r *Record) Len() int64 { return r.count }

// List yields the entries. It fails with ErrRecordFull if some are missing.
func (r *Record) List() Listing {
	return func(yield func(Listed, error) bool) {
		var names []string // on the path of the last entry
		rest := r.entries
		next := func() int {
			n, used := binary.Uvarint(rest)
			rest = rest[used:]
			return int(n)
		}
		for len(rest) > 0 {
			depth, kind, length := next(), wire.EntryKind(next()), next()
			names = append(names[:depth-1], string(rest[:length]))
			rest = rest[length:]
			if !yield(Listed{Path: strings.Join(names, "/"), Kind: kind}, nil) {
				return
			}
		}
		if r.full {
			yield(Listed{}, ErrRecordFull)
		}
	}
}
