package dmaxfer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A sweep lets call 0 fail, then call 1, and so on, until a copy gets by without the fault. Each time both sides must
// say the same, and what is the matter; the final name must hold the old content or the new, nothing may be left open,
// and a copy without faults must then succeed.

// sweepLimit is more calls than any of these copies makes.
const sweepLimit = 2000

// firstOfSweep is the first call that a sweep lets fail. One that is repeated reaches those that it leaves out.
func firstOfSweep() int { return rand.IntN(sweepStep) }

// sweepScenarios are small copies that use as much of a copy as goes together.
func sweepScenarios() map[string]scenario {
	random := rand.New(rand.NewPCG(1, 2))
	scenarios := map[string]scenario{}
	for _, sender := range []wire.Side{wire.Host, wire.DPU} {
		plain := scenario{
			Sender: sender, Chunk: 4096, Depth: 3, Idle: time.Second,
			Digest: digest.CRC32C, Durability: wire.DurabilityFull,
			Size: 4*4096 + 100, NetDelay: time.Millisecond, EngineDelay: time.Millisecond, DiskDelay: time.Millisecond,
		}
		plain.content = noise(random, plain.Size, false)
		scenarios[fmt.Sprint("new file of the ", sender)] = plain

		rich := plain
		rich.Digest, rich.Readback, rich.Overwrite, rich.Backup, rich.Xattrs = digest.XXH3, true, true, true, true
		rich.old = "old"
		rich.content = rich.content[:4096] + string(make([]byte, 2*4096)) + rich.content[:4096+100]
		scenarios[fmt.Sprint("file of the ", sender, " over an old one")] = rich

		resumed := plain
		resumed.Resumes = true
		scenarios[fmt.Sprint("resumed file of the ", sender)] = resumed
	}
	return scenarios
}

// stage makes the disks, and what an interrupted copy leaves if the scenario goes on with that.
func (c *checker) stage() [2]*disktest.Memory {
	disks := c.newDisks()
	for tries := 0; c.Resumes && c.leftover(disks) == 0; tries++ {
		if tries == 20 {
			c.t.Fatal("nothing is left to go on with")
		}
		disks = c.newDisks()
		c.interrupt(disks)
	}
	return disks
}

// interrupt cuts a copy in its middle. If the first of its chunks happens to be the last to arrive, nothing is left of
// it.
func (c *checker) interrupt(disks [2]*disktest.Memory) {
	acks := atomic.Int64{}
	c.run(disks, fault{}, injection{message: func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery {
		if _, err := native.DecodeAcks(nil, message); err == nil && acks.Add(1) == 3 {
			return dmaxfertest.Delivery{Cut: true}
		}
		return dmaxfertest.Delivery{Message: message}
	}})
}

// oracle holds the attempts of a scenario to what is promised: a checker, or for a directory a treeChecker.
type oracle interface {
	attempts() *checker
	stage() [2]*disktest.Memory
	run(disks [2]*disktest.Memory, what fault, with injection) results
	mustSucceed(when string, e results)
	judge(e results)        // after any fault
	judgeHung(e results)    // after a call that hangs
	remains(e results) bool // there is something left to copy
}

func newOracle(t *testing.T, sc scenario, what fault) oracle {
	if sc.Tree != nil {
		c := newTreeChecker(t, sc)
		c.fault = what
		return c
	}
	return &checker{scenario: sc, t: t, fault: what}
}

func (c *checker) attempts() *checker { return c }

func (c *checker) remains(results) bool { return !c.done() }

// allSweepScenarios are those of single files and of trees.
func allSweepScenarios() map[string]scenario {
	all := sweepScenarios()
	maps.Copy(all, treeSweepScenarios())
	return all
}

// sweep runs the scenario with the fault that inject makes for call n, until it is not reached. want says what a failed
// copy should end with; in a tree it may also be that some entries failed.
func sweep(
	t *testing.T, sc scenario, kind faultKind, inject func(fails func(i int, what string) bool) injection,
	want func(code int) bool,
) {
	t.Helper()
	for n := firstOfSweep(); n < sweepLimit; n += sweepStep {
		c := newOracle(t, sc, fault{Kind: kind, Done: true})
		c.attempts().untidy = kind == diskFails
		disks := c.stage()
		var failed atomic.Pointer[string]
		e := c.run(disks, fault{}, inject(func(i int, what string) bool {
			if i == n {
				failed.Store(&what)
			}
			return i == n
		}))
		c.attempts().inTime(e)
		if failed.Load() == nil {
			c.attempts().untidy = false
			c.mustSucceed("without the fault", e)
			return
		}
		c.judge(e)
		c.attempts().mustEndAs(e, want)
		if !t.Failed() && c.remains(e) {
			c.mustSucceed("afterwards", c.run(disks, fault{}, injection{}))
		}
		if t.Failed() {
			t.Fatalf("call %d, %s: %v", n, *failed.Load(), e.errs)
		}
	}
	t.Fatal("the copy does not end")
}

// mustEndAs holds both sides to a code, unless they have not got as far as their protocol.
func (c *checker) mustEndAs(e results, want func(code int) bool) {
	c.t.Helper()
	for side, err := range e.errs {
		if err != nil && e.native && !want(exit.Code(err)) {
			c.t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
		}
	}
}

func oneOf(codes ...wire.AbortCode) func(int) bool {
	return func(code int) bool {
		for _, c := range codes {
			if code == int(c) {
				return true
			}
		}
		return false
	}
}

func TestEveryFileCallFails(t *testing.T) {
	for name, sc := range allSweepScenarios() {
		for _, side := range []wire.Side{wire.Host, wire.DPU} {
			codes := []wire.AbortCode{wire.AbortTarget}
			if side == sc.Sender {
				codes[0] = wire.AbortSource
			}
			if sc.Tree != nil {
				codes = append(codes, exit.SomeFailed)
			}
			want := oneOf(codes...)
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", on the ", side, ", done ", done), func(t *testing.T) {
					sweep(t, sc, diskFails, failingFileCall(side, done), want)
				})
			}
		}
	}
}

// failingFileCall lets one file call of a side fail.
func failingFileCall(side wire.Side, done bool) func(fails func(int, string) bool) injection {
	return func(fails func(int, string) bool) injection {
		return injection{file: func(at wire.Side, i int, op, name string) *disktest.Fault {
			if at != side || !fails(i, op+" "+name) {
				return nil
			}
			return &disktest.Fault{Err: syscall.EIO, Done: done}
		}}
	}
}

// errBroken is what a device says in a sweep.
var errBroken = &doca.Error{Op: "doca_ctx_start", Code: doca.CodeDriver}

// failingDeviceCalls are the kinds of calls to a device, and how one comes to fail.
var failingDeviceCalls = map[string]func(t *dmaxfertest.DeviceFaults, fail func() error){
	"opening": func(t *dmaxfertest.DeviceFaults, fail func() error) {
		t.Open = func(string) error { return fail() }
	},
	"submitting": func(t *dmaxfertest.DeviceFaults, fail func() error) { t.Submit = fail },
	"moving": func(t *dmaxfertest.DeviceFaults, fail func() error) {
		t.Arrive = func(int64) (int, error) { return -1, fail() }
	},
	"closing": func(t *dmaxfertest.DeviceFaults, fail func() error) {
		t.Closing = func(string) error { return fail() }
	},
}

// failingDeviceCall lets one call of a kind fail.
func failingDeviceCall(
	call string, set func(t *dmaxfertest.DeviceFaults, fail func() error),
) func(fails func(int, string) bool) injection {
	return func(fails func(int, string) bool) injection {
		device, calls := dmaxfertest.NoDeviceFaults(), atomic.Int64{}
		set(device, func() error {
			if fails(int(calls.Add(1)-1), call) {
				return errBroken
			}
			return nil
		})
		return injection{device: device}
	}
}

func TestEveryDeviceCallFails(t *testing.T) {
	for name, sc := range allSweepScenarios() {
		for call, set := range failingDeviceCalls {
			t.Run(fmt.Sprint(name, ", ", call), func(t *testing.T) {
				sweep(t, sc, engineFails, failingDeviceCall(call, set), oneOf(wire.AbortDevice))
			})
		}
	}
}

// messageFault is what becomes of a message, and what a copy may end with then.
type messageFault struct {
	kind     faultKind
	delivery func(message []byte) dmaxfertest.Delivery
	want     func(int) bool
}

var failingMessages = map[string]messageFault{
	"cut": {
		connectionLost, func([]byte) dmaxfertest.Delivery { return dmaxfertest.Delivery{Cut: true} },
		oneOf(wire.AbortPeer),
	},
	"silence": {
		peerSilent, func([]byte) dmaxfertest.Delivery { return dmaxfertest.Delivery{Freeze: true} },
		oneOf(wire.AbortPeer),
	},
	"short": {
		messageCut, func(m []byte) dmaxfertest.Delivery { return dmaxfertest.Delivery{Message: m[:min(len(m), 5)]} },
		oneOf(wire.AbortProtocol, wire.AbortPeer),
	},
	"garbage": {
		messageGarbled, func([]byte) dmaxfertest.Delivery {
			return dmaxfertest.Delivery{Message: []byte("garbage, and more of it than a message has")}
		},
		oneOf(wire.AbortProtocol, wire.AbortPeer),
	},
}

// failingMessage delivers one message of a side otherwise.
func failingMessage(
	from wire.Side, deliver func(message []byte) dmaxfertest.Delivery,
) func(fails func(int, string) bool) injection {
	return func(fails func(int, string) bool) injection {
		return injection{message: func(at wire.Side, i int, message []byte) dmaxfertest.Delivery {
			if at != from || !fails(i, fmt.Sprintf("%x", message)) {
				return dmaxfertest.Delivery{Message: message}
			}
			return deliver(message)
		}}
	}
}

func TestEveryNativeMessageFails(t *testing.T) {
	for fault, is := range failingMessages {
		for name, sc := range allSweepScenarios() {
			for _, from := range []wire.Side{wire.Host, wire.DPU} {
				t.Run(fmt.Sprint(fault, " of the ", from, ", ", name), func(t *testing.T) {
					sweep(t, sc, is.kind, failingMessage(from, is.delivery), is.want)
				})
			}
		}
	}
}
