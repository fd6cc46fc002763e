package disk

import (
	"errors"
	"io"
	"math"
	"slices"
)

// A directory is read in batches of nameBatch names. A name takes nameOverhead bytes of memory in addition to its own.
const (
	nameBatch    = 1024
	nameOverhead = 24
)

// NamesSize returns about how many bytes of memory names take.
func NamesSize(names []string) int {
	size := 0
	for _, name := range names {
		size += len(name) + nameOverhead
	}
	return size
}

// Names returns the names of all entries of a directory, sorted.
func Names(dir Dir) ([]string, error) {
	names, _, err := dir.List("", math.MaxInt)
	return names, err
}

// ListNames is Dir.List for the names that next returns in any order, io.EOF after the last.
func ListNames(next func() ([]string, error), after string, limit int) (names []string, more bool, err error) {
	cut, size := "", 0 // names from cut on are left out; empty: none
	for {
		batch, err := next()
		for _, name := range batch {
			if name <= after || cut != "" && name >= cut {
				continue
			}
			names = append(names, name)
			for size += len(name) + nameOverhead; size > limit && len(names) > 1; size = NamesSize(names) {
				slices.Sort(names)
				half := len(names) / 2
				cut = names[half]
				clear(names[half:]) // frees them
				names = names[:half]
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, cut != "", nil
		case err != nil:
			return nil, false, err
		}
	}
}

func (d *osDir) List(after string, limit int) (names []string, more bool, err error) {
	if _, err := d.handle.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	return ListNames(func() ([]string, error) { return d.handle.Readdirnames(nameBatch) }, after, limit)
}
