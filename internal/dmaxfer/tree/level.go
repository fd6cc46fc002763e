package tree

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// maxNames is the number of bytes that the lists of names of all levels may take before the upper levels' lists are
// dropped. These are read again when the walk comes back. Each list has at most half of the bytes: of a directory of
// more names only the first ones are read, and the others when the walk has gone through these.
const maxNames = 24 << 20

// level is a directory whose entries the walk goes through.
type level struct {
	folder *disk.Folder
	in     string // its path with a slash at the end; empty for the root

	names []string // those after last; none if only has the paths, or if the list was dropped
	size  int      // bytes that names take
	read  bool     // names is the list
	more  bool     // there are names after it
	next  int      // index in names
	last  string   // the last name before the list; empty for the first list

	restricted bool
	only       []string // paths from Options.Only that start with in, sorted; if restricted
}

// takeName returns the next name, and the listed paths below it. There is none at the end.
func (l *level) takeName() (name string, below []string, found bool) {
	if l.restricted {
		return l.takePath()
	}
	if l.next == len(l.names) {
		return "", nil, false
	}
	l.next++
	return l.names[l.next-1], nil, true
}

func (l *level) takePath() (name string, below []string, found bool) {
	if len(l.only) == 0 {
		return "", nil, false
	}
	name, _, _ = strings.Cut(l.only[0][len(l.in):], "/")
	n := 1
	for n < len(l.only) && isAtOrBelow(l.only[n][len(l.in):], name) {
		n++
	}
	below, l.only = l.only[:n], l.only[n:]
	if len(below[0]) == len(l.in)+len(name) {
		below = below[1:]
	}
	return name, below, true
}

func isAtOrBelow(path, name string) bool {
	return strings.HasPrefix(path, name) && (len(path) == len(name) || path[len(name)] == '/')
}

// list reads names, those after last.
func (l *level) list(limit int) error {
	dir, err := l.folder.Use()
	if err != nil {
		return err
	}
	defer l.folder.Unuse()
	l.names, l.more, err = dir.List(l.last, limit)
	l.size, l.read = disk.NamesSize(l.names), err == nil
	return err
}

// goesOn reports whether there are names after the list, which it then drops.
func (l *level) goesOn() bool {
	if l.more {
		l.drop()
		return true
	}
	return false
}

// drop frees the list of names.
func (l *level) drop() {
	if l.next > 0 {
		l.last = l.names[l.next-1]
	}
	l.names, l.size, l.read, l.more, l.next = nil, 0, false, false, 0
}

// dropNames drops the lists of the uppermost levels, which the walk needs last, until the rest fits.
func (w *Walk) dropNames() {
	total := 0
	for _, l := range w.stack {
		total += l.size
	}
	for i := 0; total > w.maxNames && i < len(w.stack)-1; i++ {
		if l := w.stack[i]; l.read {
			total -= l.size
			l.drop()
		}
	}
}
