package dmaxfer

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// treeSweepScenarios are small trees that use as much of a copy as goes together.
func treeSweepScenarios() map[string]scenario {
	random := rand.New(rand.NewPCG(1, 3))
	scenarios := map[string]scenario{}
	for _, sender := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
		fresh := scenario{
			Sender: sender, Chunk: 4096, Depth: 3, Idle: time.Second,
			Digest: digest.CRC32C, Durability: negotiate.DurabilityFull,
			NetDelay: time.Millisecond, EngineDelay: time.Millisecond, DiskDelay: time.Millisecond,
			Tree: fileTree{
				"a":       {text: noise(random, 2*4096+100, false)},
				"b":       {mode: fs.ModeDir},
				"b/c":     {text: noise(random, 100, false)},
				"b/d":     {text: ""},
				"b/e":     {mode: fs.ModeDir},
				"b/e/f":   {text: noise(random, 4096, false)},
				"b/empty": {mode: fs.ModeDir},
				"g":       {mode: fs.ModeSymlink, text: "b/c"},
			},
		}
		scenarios[fmt.Sprint("new tree of the ", sender)] = fresh

		update := fresh
		update.Digest, update.Durability = digest.XXH3, negotiate.DurabilityNone
		update.Overwrite, update.Checksum = true, true
		update.OldTree = maps.Clone(fresh.Tree)
		delete(update.OldTree, "b/e/f")
		update.OldTree["b/c"] = treeEntry{text: "old"}
		update.OldTree["a"] = treeEntry{text: "older than the source"}
		update.OldTree["g"] = treeEntry{mode: fs.ModeSymlink, text: "elsewhere"}
		update.OldTree["extra"] = treeEntry{text: "is not in the source"}
		scenarios[fmt.Sprint("update of the tree of the ", sender)] = update
	}
	return scenarios
}

// sweepTree is sweep for a directory.
func sweepTree(
	t *testing.T, sc scenario, kind faultKind, inject func(fails func(i int, what string) bool) injection,
	want func(code int) bool,
) {
	t.Helper()
	for n := range sweepLimit {
		c := &treeChecker{
			checker: &checker{scenario: sc, t: t, fault: fault{Kind: kind, Done: true}}, old: sc.OldTree,
		}
		disks := sc.newDisks()
		var failed atomic.Pointer[string]
		e := c.run(disks, fault{}, inject(func(i int, what string) bool {
			if i == n {
				failed.Store(&what)
			}
			return i == n
		}))
		c.inTime(e)
		if failed.Load() == nil {
			c.mustSucceed("without the fault", e)
			return
		}
		c.judge(e)
		for side, err := range e.errs {
			if err != nil && e.native && !want(code(err)) {
				t.Errorf("the %s says %d: %v", negotiate.Side(side), code(err), err)
			}
		}
		if !t.Failed() && e.errs != [2]error{} {
			c.removeEmpty()
			c.mustSucceed("afterwards", c.run(disks, fault{}, injection{}))
		}
		if t.Failed() {
			t.Fatalf("call %d, %s: %v", n, *failed.Load(), e.errs)
		}
	}
	t.Fatal("the copy does not end")
}

func TestEveryFileCallFailsInATree(t *testing.T) {
	for name, sc := range treeSweepScenarios() {
		for _, side := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
			want := oneOf(negotiate.AbortTarget, someFailed)
			if side == sc.Sender {
				want = oneOf(negotiate.AbortSource, someFailed)
			}
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", on the ", side, ", done ", done), func(t *testing.T) {
					sweepTree(t, sc, diskFails, failingFileCall(side, done), want)
				})
			}
		}
	}
}

// failingFileCall lets one file call of a side fail.
func failingFileCall(side negotiate.Side, done bool) func(fails func(int, string) bool) injection {
	return func(fails func(int, string) bool) injection {
		return injection{file: func(at negotiate.Side, i int, op, name string) *disktest.Fault {
			if at != side || !fails(i, op+" "+name) {
				return nil
			}
			return &disktest.Fault{Err: syscall.EIO, Done: done}
		}}
	}
}

func TestEveryDeviceCallFailsInATree(t *testing.T) {
	for name, sc := range treeSweepScenarios() {
		for call, set := range failingDeviceCalls {
			t.Run(fmt.Sprint(name, ", ", call), func(t *testing.T) {
				sweepTree(t, sc, engineFails, failingDeviceCall(call, set), oneOf(negotiate.AbortDevice))
			})
		}
	}
}

func TestEveryNativeMessageFailsInATree(t *testing.T) {
	for fault, is := range failingMessages {
		for name, sc := range treeSweepScenarios() {
			for _, from := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
				t.Run(fmt.Sprint(fault, " of the ", from, ", ", name), func(t *testing.T) {
					sweepTree(t, sc, is.kind, failingMessage(from, is.delivery), is.want)
				})
			}
		}
	}
}

// sweepTreeHangs lets call 0 hang, then call 1, until a copy gets by without. Both sides end in time, and the one whose
// call hangs says so.
func sweepTreeHangs(t *testing.T, sc scenario, inject func(h *hanging) injection) {
	t.Helper()
	for n := range sweepLimit {
		h := &hanging{n: n}
		c := &treeChecker{
			checker: &checker{scenario: sc, t: t, fault: fault{Kind: diskFails}, untidy: true}, old: sc.OldTree,
		}
		c.disks = sc.newDisks()
		e, a := c.runHanging(h, inject(h), func(*attempt) {})
		if h.what() == "" {
			c.mustSucceed("without a call that hangs", e)
			return
		}
		c.mustEndWith(e, time.Unix(0, a.progress.Load()), c.hangLimit(a), negotiate.AbortPeer)
		c.mustSayHung(h, e)
		c.entries(e)
		if !t.Failed() && e.errs[sc.Sender.Other()] != nil {
			c.mustSucceed("afterwards", c.run(c.disks, fault{}, injection{}))
		}
		if t.Failed() {
			t.Fatalf("call %d, %s: %v", n, h.what(), e.errs)
		}
	}
	t.Fatal("the copy does not end")
}

func TestEveryFileCallHangsInATree(t *testing.T) {
	for name, sc := range treeSweepScenarios() {
		for _, side := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
			t.Run(fmt.Sprint(name, ", on the ", side), func(t *testing.T) {
				sweepTreeHangs(t, sc, func(h *hanging) injection {
					file := h.fileOf(side)
					return injection{file: func(at negotiate.Side, n int, op, name string) *disktest.Fault {
						if op == "close" { // of a directory, with a mutex of the tree, for which a bubble waits in vain
							return nil
						}
						return file(at, n, op, name)
					}}
				})
			})
		}
	}
}

func TestEveryDeviceCallHangsInATree(t *testing.T) {
	for name, sc := range treeSweepScenarios() {
		for call := range deviceCalls {
			t.Run(fmt.Sprint(name, ", ", call), func(t *testing.T) {
				sweepTreeHangs(t, sc, func(h *hanging) injection { return injection{device: h.device(call)} })
			})
		}
	}
}

// From each message of one side on, the other receives nothing, or only heartbeats. It ends in time, as it does with a
// file. A peer that claims progress is waited for as long as a walk of its source may take.
func TestPeerThatStopsInATree(t *testing.T) {
	for silence, stop := range silences {
		for name, sc := range treeSweepScenarios() {
			sc.Idle = 3 * time.Second
			for _, from := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
				t.Run(fmt.Sprint(silence, " ", from, ", ", name), func(t *testing.T) { stopInATree(t, sc, from, stop) })
			}
		}
	}
}

func stopInATree(t *testing.T, sc scenario, from negotiate.Side, stop silencing) {
	t.Helper()
	for n := stop.from; n < sweepLimit; n++ {
		c := &treeChecker{checker: &checker{scenario: sc, t: t, fault: fault{Kind: peerSilent}}, old: sc.OldTree}
		with, stopped := stoppingPeer(from, n, stop)
		e := c.run(sc.newDisks(), fault{}, with)
		if !stopped.Load() {
			c.mustSucceed("without the fault", e)
			return
		}
		if stop.claims {
			c.tolerance = longestWalk
		}
		c.inTime(e)
		c.judge(e)
		for side, err := range e.errs {
			if err != nil && e.native && code(err) != int(negotiate.AbortPeer) {
				t.Errorf("the %s says %d: %v", negotiate.Side(side), code(err), err)
			}
		}
		if t.Failed() {
			t.Fatalf("message %d: %v", n, e.errs)
		}
	}
	t.Fatal("the copy does not end")
}

// longestWalk is how long a receiver waits for a sender that looks for something to send.
const longestWalk = 10 * time.Minute
