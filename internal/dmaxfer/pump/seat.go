package pump

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// seat is the processor that a lane works on.
type seat struct {
	cpu   int // -1: any
	bound bool
	was   unix.CPUSet
	vain  int // turns in a row that were waited for in vain
}

// newSeat is that of the lane with this number.
func newSeat(cpus []int, lane int) *seat {
	if len(cpus) == 0 {
		return &seat{cpu: -1}
	}
	return &seat{cpu: cpus[lane%len(cpus)]}
}

// take binds the lane's thread. That it cannot be bound makes the lane slower and nothing else.
func (s *seat) take() {
	if s.cpu < 0 {
		return
	}
	runtime.LockOSThread()
	var only unix.CPUSet
	only.Set(s.cpu)
	s.bound = unix.SchedGetaffinity(0, &s.was) == nil && unix.SchedSetaffinity(0, &only) == nil
}

// leave gives the thread back as it was.
func (s *seat) leave() {
	if s.cpu < 0 {
		return
	}
	if s.bound {
		s.bound = unix.SchedSetaffinity(0, &s.was) != nil
	}
	if !s.bound {
		runtime.UnlockOSThread() // else it ends with its goroutine
	}
}

// yield lets others go first: on a bound seat the peer's lane, which is bound to the same processor.
func (s *seat) yield() {
	if s.bound {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	} else {
		runtime.Gosched()
	}
}

// patientYields is how often a lane gives way to others until it may write: the better part of a millisecond, which is some chunks.
const patientYields = 300

// lock waits for the mutex without sleeping, on a bound seat: the processor goes to the peer's lane meanwhile, and comes back soon. It gives
// up where that takes long, as beside a slow disk, and sooner the next time.
func (s *seat) lock(m *sync.Mutex) (locked bool) {
	for range max(1, patientYields>>min(s.vain, 16)) {
		if m.TryLock() {
			s.vain = 0
			return true
		}
		s.yield()
	}
	s.vain++
	return false
}

// reserving makes changes of GOMAXPROCS one at a time.
var reserving sync.Mutex

// reserve has Go run so many threads more at once, or fewer if negative.
func reserve(threads int) {
	reserving.Lock()
	defer reserving.Unlock()
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)+threads))
}
