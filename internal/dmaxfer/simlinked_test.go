package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// linkedStep is one transfer of a linkedRun.
type linkedStep struct {
	sender wire.Side
	path   string
	old    string // what the target holds before; empty: nothing
	new    string
}

// linkedRun is several transfers in virtual time over one connection, of which one meets a fault.
type linkedRun struct {
	*attempt
	t      *testing.T
	steps  []linkedStep
	memory [2]*window.KeptMemory
	ends   [2]*linkedEnd
	sums   [2]job.Summary // of the last transfer
	failed bool           // a transfer has failed
	usable bool           // the connection, after that
}

// linkedClosing is how long a side waits for the peer to close its part of a transfer.
const linkedClosing = 5 * time.Second

func newLinkedRun(t *testing.T, with injection, fast bool) *linkedRun {
	random := rand.New(rand.NewPCG(1, 2))
	r := &linkedRun{t: t, usable: true, steps: []linkedStep{
		{sender: wire.Host, path: "/files/first"},
		{sender: wire.DPU, path: "/files/second", old: "old"},
		{sender: wire.Host, path: "/files/third"},
	}}
	disks := [2]*disktest.Memory{disktest.NewMemory("/files"), disktest.NewMemory("/files")}
	for i := range r.steps {
		s := &r.steps[i]
		s.new = noise(random, int64(3*4096+100*i), false)
		disks[s.sender].Put(s.path, s.new)
		if s.old != "" {
			disks[s.sender.Other()].Put(s.path, s.old)
		}
	}
	r.attempt = newAttempt(scenario{
		Seed: 1, Chunk: 4096, Depth: 3, Idle: time.Second, Digest: digest.CRC32C,
		Durability: wire.DurabilityFull, NetDelay: time.Millisecond, EngineDelay: time.Millisecond,
		DiskDelay: time.Millisecond, Overwrite: true, FastPath: fast,
	}, disks, fault{})
	r.injection = with
	return r
}

// run carries out all steps. It is to be called in a bubble.
func (r *linkedRun) run() {
	r.start()
	for _, s := range r.steps {
		if r.transfer(s); !r.usable {
			break
		}
	}
	r.end()
}

func (r *linkedRun) start() {
	if r.device == nil {
		r.device = dmaxfertest.NoDeviceFaults()
	}
	r.bus = dmaxfertest.NewBus(r.device)
	r.network = dmaxfertest.Connect(testMessage, r.delay, r.delivery)
	for side := range r.ends {
		r.ends[side] = &linkedEnd{r.network.Conn(wire.Side(side))}
		r.memory[side] = window.Keep(r.bus.Memory(r.Seed))
	}
}

// end closes everything, and checks that nothing is left.
func (r *linkedRun) end() {
	for side := range r.ends {
		_ = r.memory[side].Close() // may be what fails; then it can be called again
		if err := r.memory[side].Close(); err != nil {
			r.t.Errorf("the memory of the %s: %v", wire.Side(side), err)
		}
		_ = r.ends[side].raw.Close()
	}
	r.network.Wait()
	if n := r.bus.Left(); n != 0 {
		r.t.Errorf("%d windows and engines are left", n)
	}
	for side, on := range r.disks {
		if n := on.Handles(); n != 0 {
			r.t.Errorf("the %s has %d handles left", wire.Side(side), n)
		}
	}
}

// transfer carries out one step, and checks it.
func (r *linkedRun) transfer(s linkedStep) {
	r.Sender = s.sender
	var errs, ends [2]error
	var sides sync.WaitGroup
	for side := range errs {
		side := wire.Side(side)
		ctx, stop := context.WithCancelCause(context.Background())
		r.stop[side] = stop
		defer stop(nil)
		o := r.options(side)
		o.File = s.path
		o.paths = simPaths(!r.FastPath)
		sides.Go(func() { errs[side], ends[side] = r.runSide(ctx, side, o) })
	}
	began := time.Now()
	sides.Wait()
	if took := time.Since(began); took > r.Idle+linkedClosing+2*time.Second {
		r.t.Errorf("%s took %s: %v", s.path, took, errs)
	}
	r.judge(s, errs)
	r.usable = ends == [2]error{} && !errors.Is(errors.Join(errs[:]...), job.ErrHung)
}

func (r *linkedRun) runSide(ctx context.Context, side wire.Side, o Options) (err, ended error) {
	use := job.TargetUse
	if side == r.Sender {
		use = job.SourceUse
	}
	part := r.ends[side].begin()
	linked := &linkedTransfer{options: o, link: Link{Conn: part, Memory: r.memory[side], Use: use}}
	r.sums[side], err = linked.run(ctx)
	linked.close()
	closing, cancel := context.WithTimeout(context.Background(), linkedClosing)
	defer cancel()
	return err, part.finish(closing)
}

// judge holds a transfer to what is promised. At most one may fail, since there is one fault.
func (r *linkedRun) judge(s linkedStep, errs [2]error) {
	r.t.Helper()
	got, found := r.disks[s.sender.Other()].Get(s.path)
	isNew, isOld := found && got == s.new, got == s.old && found == (s.old != "")
	failed := errs != [2]error{}
	switch {
	case !isNew && !isOld:
		r.t.Errorf("%s holds %d bytes that are neither the old nor the new content", s.path, len(got))
	case errs[s.sender.Other()] == nil && !isNew, errs[s.sender] == nil && !isNew:
		r.t.Errorf("%s was not copied, and one side says that all is well: %v", s.path, errs)
	case failed && r.failed:
		r.t.Errorf("after the fault %s failed, too: %v", s.path, errs)
	}
	r.failed = r.failed || failed
}

// Both sides report in which stages their lanes spent the time of each transfer, also with a window that is kept.
func TestLinkedStages(t *testing.T) {
	for _, fast := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newLinkedRun(t, injection{}, fast)
			r.NetDelay, r.EngineDelay, r.DiskDelay = 0, 0, 100*time.Millisecond
			r.Idle = 10 * time.Second
			r.start()
			for _, s := range r.steps {
				r.transfer(s)
				sent, received := r.sums[s.sender].Shares, r.sums[s.sender.Other()].Shares
				if sent[pump.Reading] < 0.05 || sent[pump.Writing] > 0 {
					t.Errorf("%s: the sender's stages are %v", s.path, sent)
				}
				if received[pump.Writing] < 0.05 || received[pump.Reading] > 0 {
					t.Errorf("%s: the receiver's stages are %v", s.path, received)
				}
			}
			r.end()
		})
	}
}

// sweepLinked lets call 0 meet the fault, then call 1, and so on, until the transfers get by without it.
func sweepLinked(
	t *testing.T, fast bool, inject func(r *linkedRun, fails func(i int, what string) bool) injection,
	check func(r *linkedRun, what string),
) {
	t.Helper()
	for n := firstOfSweep(); n < sweepLimit; n += sweepStep {
		var struck atomic.Pointer[string]
		synctest.Test(t, func(t *testing.T) {
			r := newLinkedRun(t, injection{}, fast)
			r.injection = inject(r, func(i int, what string) bool {
				if i == n {
					struck.Store(&what)
				}
				return i == n
			})
			r.run()
			if what := struck.Load(); what != nil {
				check(r, *what)
			} else if r.failed {
				t.Error("a transfer failed without a fault")
			}
		})
		what := struck.Load()
		if t.Failed() && what != nil {
			t.Fatalf("call %d, %s", n, *what)
		}
		if what == nil {
			return
		}
	}
	t.Fatal("the transfers do not end")
}

// A message that does not arrive as it was sent ends one transfer. Unless the connection itself is at fault, or it was
// the one that ends the transfer, the next transfers succeed.
func TestLinkedEveryMessageFails(t *testing.T) {
	for name, is := range failingMessages {
		for _, from := range []wire.Side{wire.Host, wire.DPU} {
			t.Run(fmt.Sprint(name, " of the ", from), func(t *testing.T) {
				lost := is.kind == connectionLost || is.kind == peerSilent
				sweepLinked(t, false, func(_ *linkedRun, fails func(int, string) bool) injection {
					return failingMessage(from, is.delivery)(fails)
				}, func(r *linkedRun, what string) {
					if closing := what == fmt.Sprintf("%x", closeMessage); !r.usable && !lost && !closing {
						r.t.Errorf("the connection cannot be used after %s", what)
					}
				})
			})
		}
	}
}

// A user who interrupts one side, at any message, ends that transfer and no other.
func TestLinkedInterrupted(t *testing.T) {
	for _, fast := range []bool{false, true} {
		for _, side := range []wire.Side{wire.Host, wire.DPU} {
			t.Run(fmt.Sprintf("%s, fast %t", side, fast), func(t *testing.T) {
				sweepLinked(t, fast, func(r *linkedRun, fails func(int, string) bool) injection {
					return injection{message: func(at wire.Side, i int, message []byte) dmaxfertest.Delivery {
						if at == side && fails(i, "message") {
							r.stop[side](errInterrupted)
						}
						return dmaxfertest.Delivery{Message: message}
					}}
				}, mustStayUsable)
			})
		}
	}
}

func mustStayUsable(r *linkedRun, what string) {
	r.t.Helper()
	if !r.usable {
		r.t.Errorf("the connection cannot be used after %s", what)
	}
}

// A device that fails ends one transfer. The next one has a new window, and nothing of the old one is left.
func TestLinkedEveryDeviceCallFails(t *testing.T) {
	for call, set := range failingDeviceCalls {
		for _, fast := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fast %t", call, fast), func(t *testing.T) {
				sweepLinked(t, fast, func(_ *linkedRun, fails func(int, string) bool) injection {
					return failingDeviceCall(call, set)(fails)
				}, mustStayUsable)
			})
		}
	}
}

// A chunk that arrives corrupted is sent again, also after the sender has said that nothing follows.
func TestLinkedEveryChunkCorrupted(t *testing.T) {
	for _, fast := range []bool{false, true} {
		t.Run(fmt.Sprintf("fast %t", fast), func(t *testing.T) {
			sweepLinked(t, fast, func(_ *linkedRun, fails func(int, string) bool) injection {
				device, moves := dmaxfertest.NoDeviceFaults(), atomic.Int64{}
				device.Arrive = func(int64) (int, error) {
					if fails(int(moves.Add(1)-1), "chunk") {
						return 0, nil
					}
					return -1, nil
				}
				return injection{device: device}
			}, func(r *linkedRun, _ string) {
				if r.failed {
					r.t.Error("a transfer failed")
				}
			})
		})
	}
}

// A device that does not return from a call ends the transfer, and the memory stays until it has returned.
func TestLinkedDeviceHangs(t *testing.T) {
	for _, fast := range []bool{false, true} {
		for _, what := range []string{"window", "engine"} {
			t.Run(fmt.Sprintf("%s, fast %t", what, fast), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { linkedDeviceHangs(t, what, fast) })
			})
		}
	}
}

func linkedDeviceHangs(t *testing.T, what string, fast bool) {
	hangs, device := make(chan struct{}), dmaxfertest.NoDeviceFaults()
	device.Open = func(opened string) error {
		if opened == what {
			<-hangs
		}
		return nil
	}
	r := newLinkedRun(t, injection{device: device}, fast)
	r.start()
	r.transfer(r.steps[0])
	if r.usable || !r.failed {
		t.Errorf("the transfer has failed: %t, the connection can be used: %t", r.failed, r.usable)
	}
	inUse := 0
	for side := range r.memory {
		if err := r.memory[side].Close(); errors.Is(err, window.ErrMemoryInUse) {
			inUse++
		} else if err != nil {
			t.Errorf("the memory of the %s: %v", wire.Side(side), err)
		}
	}
	if inUse != 1 {
		t.Errorf("%d sides say that their memory is in use", inUse)
	}
	close(hangs)
	synctest.Wait()
	r.end()
}

// The second session, on the fast path, begins while the first one still waits for its disk.
func TestLinkedLeavesDMAWithSlowDisk(t *testing.T) {
	for step := range 2 {
		t.Run(fmt.Sprintf("transfer %d", step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leavesDMAWithSlowDisk(t, step) })
		})
	}
}

func leavesDMAWithSlowDisk(t *testing.T, step int) {
	device, refused := dmaxfertest.NoDeviceFaults(), atomic.Bool{}
	device.Open = func(opened string) error {
		if opened == "engine" && refused.CompareAndSwap(false, true) {
			return &doca.Error{Op: "doca_mmap_create_from_export", Code: doca.CodeNotPermitted}
		}
		return nil
	}
	r := newLinkedRun(t, injection{device: device}, false)
	r.NetDelay, r.DiskDelay = 100*time.Microsecond, 50*time.Millisecond
	r.start()
	if r.transfer(r.steps[step]); r.failed || !refused.Load() {
		t.Error("the transfer has failed, or was not refused DMA")
	}
	r.end()
}
