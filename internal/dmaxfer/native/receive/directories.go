package receive

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
)

// directories are those that do not have their final attributes yet. Any goroutine of the transfer uses them; the last
// one that leaves a directory is the only one that still uses it.
type directories struct {
	t        *role.Transfer
	replies  *replies
	rootLeft func() // is called after the root has been left

	mu   sync.Mutex
	open map[*directory]bool
}

// add adds a directory, which is on the planner's stack.
func (s *directories) add(d *directory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[d] = true
	d.pending++
	if d.parent != nil {
		d.parent.pending++
	}
}

// await has a directory wait for an entry in it, or also for a job, because the sender may withdraw the entry that the
// job works on.
func (s *directories) await(d *directory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.pending++
}

// allLeft reports whether no directory is being filled.
func (s *directories) allLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0
}

// closeAll closes what is left when the transfer has ended.
func (s *directories) closeAll() {
	for d := range s.open {
		d.close()
	}
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
