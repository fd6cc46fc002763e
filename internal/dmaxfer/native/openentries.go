package native

import (
	"sync"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// openEntries are the entries of a receiver that are not decided yet. Any goroutine of the transfer uses it.
type openEntries struct {
	mu          sync.Mutex
	table       [negotiate.MaxOpen]*arriving // by number; nil: decided, or being decided
	undecided   int
	needed      int                // those of them whose content the sender is to send
	failed      int64              // entries
	links       bool               // hard links are announced
	failedFiles pathSet            // what hard links cannot be made to
	neededFiles pathSet            // in a dry run: what hard links would be made to again
	openable    *weighted.Weighted // has a permit for each file of a tree that is open and comes in chunks

	// Each has maxAttributes permits, one for each byte of the extended attributes of needed files, and of other
	// entries that are not planned yet.
	fileAttributes, otherAttributes *weighted.Weighted
}

func newOpenEntries(targets int64, links bool) openEntries {
	return openEntries{
		links:       links,
		failedFiles: newPathSet(), neededFiles: newPathSet(), openable: weighted.NewWeighted(targets),
		fileAttributes: weighted.NewWeighted(maxAttributes), otherAttributes: weighted.NewWeighted(maxAttributes),
	}
}

// add adds an announced entry.
func (o *openEntries) add(e *arriving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.table[e.number%negotiate.MaxOpen] = e
	o.undecided++
}

// entry returns an entry that is not decided, nor being decided, or nil.
func (o *openEntries) entry(number uint32) *arriving {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.table[number%negotiate.MaxOpen]; e != nil && e.number == number {
		return e
	}
	return nil
}

// expect notes that the sender will send the content of an entry.
func (o *openEntries) expect(e *arriving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e.counted = true
	o.needed++
}

// compareWith notes what an entry is compared with until it is decided. It reports false if it is already.
func (o *openEntries) compareWith(e *arriving, own *tree.Entry) (undecided bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isUndecided(e) {
		return false
	}
	e.own = own
	return true
}

// hold holds what an undecided entry is compared with, which the caller releases; nil: nothing.
func (o *openEntries) hold(e *arriving) (own *tree.Entry, undecided bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if undecided = o.isUndecided(e); undecided && e.own != nil {
		held := *e.own
		held.Dir.Hold()
		own = &held
	}
	return own, undecided
}

// permit notes in of, a field of an entry, that it has permits until it is decided. If it has been decided already,
// permit releases them and reports false.
func (o *openEntries) permit(e *arriving, from *weighted.Weighted, permits int64, of *int64) (undecided bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isUndecided(e) {
		from.Release(permits)
		return false
	}
	*of = permits
	return true
}

// holdAttributes prepares an entry for extended attributes of that many bytes. It reports false if they exceed the
// limit. Those of a file never do: it has permits for more.
func (o *openEntries) holdAttributes(e *arriving, bytes int64) (held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.kind != negotiate.EntryFile {
		if !o.otherAttributes.TryAcquire(bytes) {
			return false
		}
		e.attributePermits = bytes
	} else if surplus := e.attributePermits - bytes; surplus > 0 {
		o.fileAttributes.Release(surplus)
		e.attributePermits = bytes
	}
	return true
}

// releaseAttributes releases the permits of a directory or symlink whose extended attributes are not held any more.
func (o *openEntries) releaseAttributes(e *arriving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.otherAttributes.Release(e.attributePermits)
	e.attributePermits = 0
}

// claim makes the caller the one that decides an entry. It then adds the reply for the peer, which may announce
// another entry in its place as soon as that has been sent, and calls decided.
func (o *openEntries) claim(e *arriving) bool { return o.claimNoting(e, nil) }

// claimFailed is claim for a file that fails, of which a hard link that is announced later learns.
func (o *openEntries) claimFailed(e *arriving) bool { return o.claimNoting(e, &o.failedFiles) }

// claimNeeded is claim for a file that a dry run finds to be needed, of which a hard link learns, too.
func (o *openEntries) claimNeeded(e *arriving) bool { return o.claimNoting(e, &o.neededFiles) }

func (o *openEntries) claimNoting(e *arriving, files *pathSet) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isUndecided(e) {
		return false
	}
	o.table[e.number%negotiate.MaxOpen] = nil
	if files != nil && o.links && e.kind == negotiate.EntryFile {
		files.add(e.path)
	}
	return true
}

// isUndecided reports whether an entry is neither decided nor being decided. The caller has locked mu.
func (o *openEntries) isUndecided(e *arriving) bool { return o.table[e.number%negotiate.MaxOpen] == e }

// neededFile reports whether a dry run has found that the file at a path is needed.
func (o *openEntries) neededFile(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.neededFiles.has(path)
}

// decided counts a claimed entry, and returns the hard links that waited for it.
func (o *openEntries) decided(e *arriving, failed bool) (links []*arriving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.undecided--
	if e.counted {
		o.needed--
	}
	if failed {
		o.failed++
	}
	o.openable.Release(e.openPermits)
	if e.kind == negotiate.EntryFile {
		o.fileAttributes.Release(e.attributePermits)
		e.attributePermits = 0
	}
	return e.links
}

// failedLate counts an entry that was decided before.
func (o *openEntries) failedLate() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed++
}

// awaitFile has a hard link wait for its file if that is undecided, and otherwise reports whether the file has failed.
func (o *openEntries) awaitFile(l *arriving) (waits, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.table {
		if e != nil && e.kind == negotiate.EntryFile && e.path == l.link {
			e.links = append(e.links, l)
			return true, false
		}
	}
	return false, o.failedFiles.has(l.link)
}

// counts returns the numbers of entries that are undecided, needed, and failed.
func (o *openEntries) counts() (undecided, needed int, failed int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.undecided, o.needed, o.failed
}

// unended returns how many bytes the files have of which everything is stored and the end is not announced: the sender
// may be reading them again, because their change times have moved.
func (o *openEntries) unended() (bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.table {
		if e != nil {
			bytes += e.awaitedEnd()
		}
	}
	return bytes
}

// settle releases what the entries are compared with when the transfer has ended, and nobody else uses them.
func (o *openEntries) settle() {
	for _, e := range o.table {
		if e != nil && e.own != nil {
			e.own.Release()
		}
	}
}

// targets returns the open targets of the entries.
func (o *openEntries) targets() (opened []target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.table {
		if e == nil {
			continue
		}
		if t := e.opened(); t != nil {
			opened = append(opened, t)
		}
	}
	return opened
}
