package dmaxfer

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// processors is the memory of a device that lanes share processors with.
type processors struct{ memoryLayer }

func (processors) traits() traits { return traits{cpus: []int{2, 3}} }

// Lanes share processors by pairs, in a copy that is worth it.
func TestSeats(t *testing.T) {
	large := negotiate.Plan{SizeKnown: true, Size: 1 << 30, Digest: negotiate.Digest(digest.CRC32C)}
	with := func(change func(p *negotiate.Plan)) negotiate.Plan {
		p := large
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		plan   negotiate.Plan
		stream bool
		bound  bool
	}{
		"large":           {plan: large, bound: true},
		"small":           {plan: with(func(p *negotiate.Plan) { p.Size = 1 << 20 })},
		"ordered":         {plan: with(func(p *negotiate.Plan) { p.Digest = negotiate.Digest(digest.SHA256) })},
		"from a stream":   {plan: with(func(p *negotiate.Plan) { p.SizeKnown, p.Size = false, 0 })},
		"to a stream":     {plan: with(func(p *negotiate.Plan) { p.StreamTarget = true })},
		"a stream's side": {plan: large, stream: true},
	} {
		n := &native{place: &place{stream: c.stream}, plan: c.plan, memory: processors{}}
		if got := n.seats(); (got != nil) != c.bound {
			t.Errorf("%s: bound to %v", name, got)
		}
	}
}

// Processors of which there are more than lanes are left to the system.
func TestProcessorsAreScarceWhereThereAreFew(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, few unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if got := scarceCPUs(); (got != nil) != (before.Count() <= maxLanes) {
		t.Errorf("of %d processors %v are scarce", before.Count(), got)
	}
	only := 0
	for !before.IsSet(only) {
		only++
	}
	few.Set(only)
	if err := unix.SchedSetaffinity(0, &few); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // else the thread ends with the test
	if got := scarceCPUs(); len(got) != 1 || got[0] != only {
		t.Errorf("of processor %d alone %v are scarce", only, got)
	}
}
