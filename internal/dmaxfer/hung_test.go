package dmaxfer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A call that hangs does not return before the copy has ended. Each side must end in time all the same and say so, and
// nothing that the call may use may be given back before it returns.

// hanging lets call n hang, of those that it is asked about.
type hanging struct {
	n     int
	named string // calls whose description contains this hang instead, if it is not empty

	mu    sync.Mutex
	calls int
	call  string // once it hangs
	until chan struct{}
}

// next returns what the next call has to wait for; nil: nothing.
func (h *hanging) next(what string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.calls
	h.calls++
	if h.call != "" || h.named == "" && i != h.n || !strings.Contains(what, h.named) {
		return nil
	}
	h.call, h.until = what, make(chan struct{}) // in the bubble, where the call waits for it
	return h.until
}

// what is the call that hangs, or nothing.
func (h *hanging) what() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.call
}

func (h *hanging) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until != nil {
		close(h.until)
	}
}

// fileOf lets a file call of one side hang.
func (h *hanging) fileOf(side wire.Side) func(wire.Side, int, string, string) *disktest.Fault {
	return func(at wire.Side, _ int, op, name string) *disktest.Fault {
		if at != side {
			return nil
		}
		if until := h.next(op + " " + name); until != nil {
			return &disktest.Fault{Hang: until}
		}
		return nil
	}
}

// deviceCalls are the kinds of calls to a device, and how one comes to hang.
var deviceCalls = map[string]func(t *dmaxfertest.DeviceFaults, wait func()){
	"opening":    func(t *dmaxfertest.DeviceFaults, wait func()) { t.Open = func(string) error { wait(); return nil } },
	"submitting": func(t *dmaxfertest.DeviceFaults, wait func()) { t.Submit = func() error { wait(); return nil } },
	"moving": func(t *dmaxfertest.DeviceFaults, wait func()) {
		t.Arrive = func(int64) (int, error) { wait(); return -1, nil }
	},
	"closing": func(t *dmaxfertest.DeviceFaults, wait func()) { t.Closing = func(string) error { wait(); return nil } },
}

func (h *hanging) device(call string) *dmaxfertest.DeviceFaults {
	device := dmaxfertest.NoDeviceFaults()
	deviceCalls[call](device, func() {
		if until := h.next(call); until != nil {
			<-until
		}
	})
	return device
}

// runHanging runs a copy, has held look at what it has left while the call hangs, and lets the call return.
func (c *checker) runHanging(h *hanging, with injection, held func(a *attempt)) (e results, a *attempt) {
	c.t.Helper()
	synctest.Test(c.t, func(*testing.T) {
		a = newAttempt(c.scenario, c.disks, fault{})
		a.injection = with
		c.last = a
		e = a.run()
		held(a)
		h.release()
		time.Sleep(time.Hour) // what is slow comes to its end
	})
	c.nothingIsOpen()
	return e, a
}

// mustEndWith holds both sides to a code and a time. A side whose last close hangs may have succeeded.
func (c *checker) mustEndWith(e results, since time.Time, limit time.Duration, want wire.AbortCode) {
	c.t.Helper()
	for side, err := range e.errs {
		if err != nil && exit.Code(err) != int(want) {
			c.t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
		}
		if took := e.ended[side].Sub(since); took > limit {
			c.t.Errorf("the %s ended after %s, and %s are allowed: %v", wire.Side(side), took, limit, err)
		}
	}
}

// hangLimit is how long after the last progress a side may end.
func (c *checker) hangLimit(a *attempt) time.Duration {
	limit := c.Idle + time.Second + 2*job.ReturnTime
	if a.ended.Load() {
		return limit + job.LongestRename
	}
	return limit
}

func (c *checker) mustSayHung(h *hanging, e results) {
	c.t.Helper()
	failed, said := 0, 0
	for _, err := range e.errs {
		if err != nil {
			failed++
		}
		if errors.Is(err, job.ErrHung) {
			said++
		}
	}
	if failed > 0 && said != 1 || failed == 0 && !strings.HasPrefix(h.what(), "close") {
		c.t.Errorf("%d sides failed, and %d say that a call hangs", failed, said)
	}
}

// sweepHangs lets call 0 hang, then call 1, until a copy gets by without. Both sides end in time, and the one whose
// call hangs says so. It returns how much of a file was kept at most.
func sweepHangs(
	t *testing.T, sc scenario, inject func(h *hanging) injection, held func(h *hanging, a *attempt),
) (kept int64) {
	t.Helper()
	for n := firstOfSweep(); n < sweepLimit; n += sweepStep {
		h := &hanging{n: n}
		c := newOracle(t, sc, fault{Kind: diskFails})
		a := c.attempts()
		a.untidy, a.disks = true, c.stage()
		e, last := a.runHanging(h, inject(h), func(a *attempt) { held(h, a) })
		if h.what() == "" {
			c.mustSucceed("without a call that hangs", e)
			return kept
		}
		a.mustEndWith(e, time.Unix(0, last.progress.Load()), a.hangLimit(last), wire.AbortPeer)
		a.mustSayHung(h, e)
		c.judgeHung(e)
		if sc.Tree == nil {
			kept = max(kept, a.leftover(a.disks))
		}
		if !t.Failed() && c.remains(e) {
			c.mustSucceed("afterwards", c.run(a.disks, fault{}, injection{}))
		}
		if t.Failed() {
			t.Fatalf("call %d, %s: %v", n, h.what(), e.errs)
		}
	}
	t.Fatal("the copy does not end")
	return 0
}

func (c *checker) judgeHung(e results) {
	c.t.Helper()
	c.finalName(e)
	c.names(true)
}

func TestEveryFileCallHangs(t *testing.T) {
	files, kept := 0, int64(0) // the sample of one copy may leave out all calls that keep something
	for name, sc := range allSweepScenarios() {
		for _, side := range []wire.Side{wire.Host, wire.DPU} {
			t.Run(fmt.Sprint(name, ", on the ", side), func(t *testing.T) {
				most := sweepHangs(t, sc, hangingFileCall(side, sc.Tree != nil), func(*hanging, *attempt) {})
				if sc.Tree == nil {
					files++
					kept = max(kept, most)
				}
			})
		}
	}
	if files > 0 && kept == 0 {
		t.Error("nothing was ever kept to resume")
	}
}

// hangingFileCall lets one file call of a side hang. In a tree a directory is closed with a mutex held, for which a
// bubble waits in vain.
func hangingFileCall(side wire.Side, inTree bool) func(h *hanging) injection {
	return func(h *hanging) injection {
		file := h.fileOf(side)
		return injection{file: func(at wire.Side, n int, op, name string) *disktest.Fault {
			if op == "close" && inTree {
				return nil
			}
			return file(at, n, op, name)
		}}
	}
}

// Memory that a call of the device may still use is there until it returns.
func TestEveryDeviceCallHangs(t *testing.T) {
	for name, sc := range allSweepScenarios() {
		for call := range deviceCalls {
			t.Run(fmt.Sprint(name, ", ", call), func(t *testing.T) {
				inject := func(h *hanging) injection { return injection{device: h.device(call)} }
				sweepHangs(t, sc, inject, func(h *hanging, a *attempt) {
					if h.what() != "" && call != "opening" && a.bus.Left() == 0 {
						t.Errorf("nothing is open any more while the device is still %s", call)
					}
				})
			})
		}
	}
}

// An interruption ends a side whose call hangs, and the other, with the code of the interruption.
func TestInterruptedWhileACallHangs(t *testing.T) {
	device := func(h *hanging, _ wire.Side) injection { return injection{device: h.device("moving")} }
	sends := func(h *hanging, sender wire.Side) injection { return injection{file: h.fileOf(sender)} }
	receives := func(h *hanging, sender wire.Side) injection { return injection{file: h.fileOf(sender.Other())} }
	for name, tc := range map[string]struct {
		named  string
		inject func(h *hanging, sender wire.Side) injection
		limit  time.Duration
	}{
		"moving":   {"moving", device, 0},
		"reading":  {"read", sends, 0},
		"creating": {"create .file", receives, 0},
		"writing":  {"write .file.dma-copy-part", receives, 0},
		"flushing": {"sync .file.dma-copy-part", receives, 0},
		"renaming": {"rename", receives, job.RenameGrace},
	} {
		t.Run(name, func(t *testing.T) {
			bothSides(t, func(t *testing.T, sender wire.Side) {
				sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
				sc.Idle = time.Hour
				inject := func(h *hanging) injection { return tc.inject(h, sender) }
				interruptHanging(t, sc, &hanging{named: tc.named}, sender.Other(), tc.limit, inject)
				if name != "renaming" { // a sender that has asked for that does not know what becomes of it
					interruptHanging(t, sc, &hanging{named: tc.named}, sender, tc.limit, inject)
				}
			})
		})
	}
}

func interruptHanging(
	t *testing.T, sc scenario, h *hanging, side wire.Side, limit time.Duration, inject func(h *hanging) injection,
) {
	t.Helper()
	c := &checker{scenario: sc, t: t, fault: fault{Kind: diskFails}, untidy: true}
	c.disks = c.stage()
	var interrupted time.Time
	with := inject(h)
	with.started = func(a *attempt) {
		time.AfterFunc(time.Minute/4, func() {
			interrupted = time.Now()
			a.stop[side](errInterrupted)
		})
	}
	e, _ := c.runHanging(h, with, func(*attempt) {})
	if h.what() == "" {
		t.Fatalf("no call to hang: %v", e.errs)
	}
	c.agreement(e)
	for at, err := range e.errs {
		if took := e.ended[at].Sub(interrupted); took > limit+time.Second+2*job.ReturnTime {
			t.Errorf("%s: the %s ended %s after the interruption: %v", h.what(), wire.Side(at), took, err)
		}
	}
	mustBe(t, e.errs[side], errInterrupted)
	c.finalName(e)
}

// A call that hangs while the partial file is kept does not keep a side from its end.
func TestKeepingHangs(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		sc := sweepScenarios()[fmt.Sprint("resumed file of the ", sender)]
		c := &checker{scenario: sc, t: t, fault: fault{Kind: diskFails}, untidy: true}
		c.disks = c.stage()
		h := &hanging{named: "truncate .file.dma-copy-part"}
		var interrupted time.Time
		var keeps atomic.Bool
		file := func(at wire.Side, n int, op, name string) *disktest.Fault {
			if !keeps.Load() {
				return nil
			}
			return h.fileOf(sender.Other())(at, n, op, name)
		}
		e, _ := c.runHanging(h, injection{file: file, started: func(a *attempt) {
			a.message = func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery {
				if _, err := native.DecodeAcks(nil, message); err == nil && interrupted.IsZero() {
					interrupted = time.Now()
					keeps.Store(true)
					a.stop[sender](errInterrupted)
				}
				return dmaxfertest.Delivery{Message: message}
			}
		}}, func(*attempt) {})
		if h.what() == "" || c.leftover(c.disks) == 0 {
			t.Fatalf("nothing was kept: %v", e.errs)
		}
		mustBe(t, e.errs[sender.Other()], job.ErrHung)
		c.mustEndWith(e, interrupted, time.Second+job.ReleaseTime, wire.AbortInterrupted)
	})
}
