package tree

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Mirror is what a transfer of a tree leaves to its side for removing from the target what the source does not have.
// The transfer sets it, the caller calls Close. The methods of a nil Mirror that transfers call do nothing.
type Mirror struct {
	// Entries are those that the transfer has announced, on both of its sides; nil: they are not wanted.
	Entries *Record

	mu     sync.Mutex
	root   disk.Identity // of the directory that was sent or filled
	target *disk.Tree    // nil on a sender, and unless the transfer came to its end
	closed bool
}

// Begin forgets an earlier attempt of the same transfer.
func (m *Mirror) Begin() {
	if m != nil {
		m.Entries.reset()
	}
}

// Announced notes an entry. It is called by one goroutine at a time.
func (m *Mirror) Announced(kind wire.EntryKind, depth int, name string) {
	if m != nil {
		m.Entries.add(kind, depth, name)
	}
}

// Sends notes the directory that is sent.
func (m *Mirror) Sends(w *Walk) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.root = w.root.Identity()
}

// Keep takes over a target at the end of the transfer, with its lock. After Close of the Mirror it closes
// the target.
func (m *Mirror) Keep(target *disk.Tree) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed { // the transfer was given up meanwhile
		return target.Close(true)
	}
	info, err := target.Dir().Info()
	if err != nil {
		_ = target.Close(false) // the first error is reported
		return disk.CannotStat("the target", err)
	}
	m.root, m.target = info.Identity, target
	return nil
}

// Target returns the open directory of the target, nil if the Mirror has none. It is valid until Close.
func (m *Mirror) Target() disk.Dir {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.target == nil {
		return nil
	}
	return m.target.Dir()
}

// Check returns an error that is a disk.ErrSourceChanged unless a path still leads to the directory that was sent or
// filled. Nothing may be removed otherwise: what was copied is not what the user sees there.
func (m *Mirror) Check(on disk.FS, path string) error {
	m.mu.Lock()
	root := m.root
	m.mu.Unlock()
	info, err := on.Stat(path)
	if err == nil && info.Mode.IsDir() && info.SameFile(root) {
		return nil
	}
	return disk.NewError(disk.ErrSourceChanged, err, "run the same command again when no other process changes it",
		"nothing is deleted: %s was moved or replaced during the copy", path)
}

// Close closes the target. It may be called while the transfer still runs, after a job.ErrHung.
func (m *Mirror) Close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	target := m.target
	m.target, m.closed = nil, true
	if target == nil {
		return nil
	}
	return target.Close(true)
}
