package pump

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// allowed is where the calling thread may run.
func allowed(t *testing.T) (cpus unix.CPUSet) {
	t.Helper()
	must(t, unix.SchedGetaffinity(0, &cpus))
	return cpus
}

// firstCPU is one of those.
func firstCPU(t *testing.T) int {
	cpus, cpu := allowed(t), 0
	for !cpus.IsSet(cpu) {
		cpu++
	}
	return cpu
}

func TestSeatBindsItsThreadAndLetsGoOfIt(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, cpu := allowed(t), firstCPU(t)
	s := newSeat([]int{cpu}, 3)
	s.take()
	if here := allowed(t); here.Count() != 1 || !here.IsSet(cpu) {
		t.Errorf("the thread may run on %d processors", here.Count())
	}
	s.yield()
	s.leave()
	if after := allowed(t); after != before {
		t.Errorf("the thread may run on %d processors afterwards, not %d", after.Count(), before.Count())
	}
}

// A processor that is gone is no reason not to copy.
func TestSeatThatDoesNotExist(t *testing.T) {
	before := allowed(t)
	s := newSeat([]int{1023}, 0)
	s.take()
	defer s.leave()
	if s.bound {
		t.Skip("this machine has a processor 1023")
	}
	if allowed(t) != before {
		t.Error("the thread is bound elsewhere")
	}
}

// Both lanes of both sides on one processor.
func TestBoundLanesCopy(t *testing.T) {
	p := newPair(64 * 1000)
	p.hostSends, p.lanes, p.slots = true, [2]int{2, 2}, 8
	p.cpus = []int{firstCPU(t)}
	p.build()
	processors := runtime.GOMAXPROCS(0)
	sent, received := p.run(t.Context())
	must(t, sent)
	must(t, received)
	if !bytes.Equal(p.source.bytes, p.target.bytes) {
		t.Error("the bytes arrived changed")
	}
	if got := runtime.GOMAXPROCS(0); got != processors {
		t.Errorf("GOMAXPROCS is %d now, and was %d", got, processors)
	}
}

// Who would wait long for its turn to write does without.
func TestWaitingForATurnEnds(t *testing.T) {
	var turn sync.Mutex
	s := newSeat(nil, 0)
	if !s.lock(&turn) {
		t.Error("a turn that nobody has was not taken")
	}
	for range 40 { // and less long each time
		if s.lock(&turn) {
			t.Error("a turn was taken that another one has")
		}
	}
	turn.Unlock()
	if !s.lock(&turn) {
		t.Error("a turn that has become free was not taken")
	}
}
