package pump

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Pinning pins the lanes of one copy to CPUs. It is the caller's, because CPU affinity and GOMAXPROCS are the
// process's.
type Pinning interface {
	// Reserve is called before that many lanes are pinned, and release after they have ended: a pinned lane has a
	// thread of its own, and must not take another goroutine's.
	Reserve(lanes int) (release func())

	// Pin is called by the goroutine of a lane, which is then the only one on its thread. A lane that could not be
	// pinned is slower and nothing else. The lane calls unpin before it ends.
	Pin(lane int) (unpin func(), pinned bool)
}

// laneCPU is the CPU of one lane, if it is pinned.
type laneCPU struct {
	pinning     Pinning // nil: any CPU
	lane        int
	undo        func()
	pinned      bool
	failedTries int // how many calls of lock in a row were without success
}

func newLaneCPU(pinning Pinning, lane int) *laneCPU { return &laneCPU{pinning: pinning, lane: lane} }

// pin is called by the lane.
func (c *laneCPU) pin() {
	if c.pinning != nil {
		c.undo, c.pinned = c.pinning.Pin(c.lane)
	}
}

// unpin is called by the lane before it ends.
func (c *laneCPU) unpin() {
	if c.undo != nil {
		c.undo()
	}
	c.pinned = false
}

// yield lets others go first: for a pinned lane that is the peer's lane, which is pinned to the same CPU.
func (c *laneCPU) yield() {
	if c.pinned {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	} else {
		runtime.Gosched()
	}
}

// maxYields is how often a lane yields until it may write: the better part of a millisecond, which is some chunks.
const maxYields = 300

// lock waits for the mutex of a pinned lane without sleeping: the CPU goes to the peer's lane meanwhile, and comes back
// soon. It gives up where that takes long, as beside a slow disk, and sooner the next time.
func (c *laneCPU) lock(m *sync.Mutex) (locked bool) {
	for range max(1, maxYields>>min(c.failedTries, 16)) {
		if m.TryLock() {
			c.failedTries = 0
			return true
		}
		c.yield()
	}
	c.failedTries++
	return false
}
