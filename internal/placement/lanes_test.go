package placement

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// allowedCPUs returns where the calling thread may run.
func allowedCPUs(t *testing.T) (cpus unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	return cpus
}

// firstCPU returns the first of those.
func firstCPU(t *testing.T) int {
	t.Helper()
	cpus, cpu := allowedCPUs(t), 0
	for !cpus.IsSet(cpu) {
		cpu++
	}
	return cpu
}

// Lanes are pinned only where there are no more CPUs than lanes.
func TestLanesArePinnedToFewCPUs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := allowedCPUs(t)
	if got := (Lanes{}).Lanes(before.Count()); got == nil {
		t.Errorf("%d lanes on as many CPUs are not pinned", before.Count())
	}
	if got := (Lanes{}).Lanes(before.Count() - 1); got != nil {
		t.Errorf("fewer lanes than CPUs are pinned to %v", got)
	}
	only := firstCPU(t)
	var few unix.CPUSet
	few.Set(only)
	if err := unix.SchedSetaffinity(0, &few); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // else the thread ends with the test
	if got, is := (Lanes{}).Lanes(2).(pinning); !is || len(got) != 1 || got[0] != only {
		t.Errorf("with CPU %d alone lanes are pinned to %v", only, got)
	}
}

func TestPinBindsTheThreadAndUnpinFreesIt(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, cpu := allowedCPUs(t), firstCPU(t)
	unpin, pinned := pinning{cpu}.Pin(3)
	if here := allowedCPUs(t); !pinned || here.Count() != 1 || !here.IsSet(cpu) {
		t.Errorf("pinned: %t; the thread may run on %d CPUs", pinned, here.Count())
	}
	unpin()
	if after := allowedCPUs(t); after != before {
		t.Errorf("the thread may run on %d CPUs afterwards, not %d", after.Count(), before.Count())
	}
}

// A CPU that is gone does not keep a lane from running.
func TestPinToAMissingCPU(t *testing.T) {
	before := allowedCPUs(t)
	unpin, pinned := pinning{1023}.Pin(0)
	defer unpin()
	if pinned {
		t.Skip("this machine has a CPU 1023")
	}
	if allowedCPUs(t) != before {
		t.Error("the thread is pinned elsewhere")
	}
}

func TestReserveIsUndone(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	release := pinning{0}.Reserve(2)
	if got := runtime.GOMAXPROCS(0); got != before+2 {
		t.Errorf("GOMAXPROCS is %d, not %d more than %d", got, 2, before)
	}
	release()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("GOMAXPROCS is %d now, and was %d", got, before)
	}
}
