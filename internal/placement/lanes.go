package placement

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
)

// Lanes pins the lanes of transfers to the CPUs that this process may use. With the software device both sides' lanes
// then share them: a chunk that is filled and emptied on one CPU stays in its cache, and while one lane of the two
// waits the other works. Safe for concurrent use.
type Lanes struct{}

// Lanes implements role.Placement: it returns nil if there are more CPUs than lanes, which the scheduler uses better.
func (Lanes) Lanes(n int) pump.Pinning {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() > n {
		return nil
	}
	var cpus pinning
	for cpu := 0; len(cpus) < allowed.Count(); cpu++ {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// pinning is the CPUs that lanes are pinned to, in order of their numbers and round robin.
type pinning []int

var _ pump.Pinning = pinning{}

// reserving makes changes of GOMAXPROCS one at a time.
var reserving sync.Mutex

// Reserve implements pump.Pinning: Go runs that many threads more at once until release is called.
func (pinning) Reserve(lanes int) (release func()) {
	change := func(threads int) {
		reserving.Lock()
		defer reserving.Unlock()
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)+threads))
	}
	change(lanes)
	return func() { change(-lanes) }
}

// Pin implements pump.Pinning. A thread that cannot get its affinity back ends with its goroutine.
func (p pinning) Pin(lane int) (unpin func(), pinned bool) {
	runtime.LockOSThread()
	var before, only unix.CPUSet
	only.Set(p[lane%len(p)])
	if unix.SchedGetaffinity(0, &before) != nil || unix.SchedSetaffinity(0, &only) != nil {
		return runtime.UnlockOSThread, false
	}
	return func() {
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}, true
}
