package native

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// directory is one of a receiver that is being filled.
type directory struct {
	entry  *arriving
	parent *directory
	of     *disk.Directory // nil: nothing may be written, or failed
	seen   disk.Dir        // in place of it, where nothing may be written; nil: it does not exist
	failed error           // why nothing can be created in it
	unset  error           // why its extended attributes could not be set; it fails when it is left

	pending int // its undecided entries and directories, and its place on the stack; guarded by directories.mu
}

func (d *directory) close() {
	if d.seen != nil {
		_ = d.seen.Close() // was only read
		d.seen = nil
	}
	if d.of != nil && d.parent != nil {
		d.of.Release()
		d.of = nil
	}
}

// directories are those of a receiver that do not have their final attributes yet. Any goroutine of the transfer uses
// it; the last one that leaves a directory is the only one that still uses that.
type directories struct {
	mu   sync.Mutex
	open map[*directory]bool
}

// enter adds a directory, which is on the planner's stack.
func (s *directories) enter(d *directory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*directory]bool)
	}
	s.open[d] = true
	d.pending++
	if d.parent != nil {
		d.parent.pending++
	}
}

// await has a directory wait for an entry in it, or for a job besides its entries, of which the sender may withdraw the
// one that the job works on.
func (s *directories) await(d *directory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.pending++
}

// leave removes one of what a directory waits for, and reports whether that was the last one. The caller then sets its
// attributes and calls closed.
func (s *directories) leave(d *directory) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.pending--
	return d.pending == 0
}

// closed removes a directory.
func (s *directories) closed(d *directory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, d)
}

func (s *directories) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0
}

// close closes what is left when the transfer has ended.
func (s *directories) close() {
	for d := range s.open {
		d.close()
	}
}
