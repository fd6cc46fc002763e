package dmaxfer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// silencing is what becomes of a side's messages once it has stopped working.
type silencing struct {
	say  func(n int, message []byte) []byte // what is said instead; nil: nothing
	from int                                // messages: there is no heartbeat before HELLO

	claims bool // progress
}

func silent(int, []byte) []byte { return nil }

func onlyBeating(_ int, message []byte) []byte {
	if _, err := native.DecodeBeat(message); err != nil {
		return nil
	}
	return message
}

// claimingProgress reports more work with each heartbeat.
func claimingProgress(n int, message []byte) []byte {
	if onlyBeating(n, message) == nil {
		return nil
	}
	return native.AppendBeat(nil, native.Beat{Phase: 15, Work: uint64(n) << 30})
}

var silences = map[string]silencing{
	"silent":           {say: silent},
	"only beating":     {say: onlyBeating, from: 2},
	"claimingProgress": {say: claimingProgress, from: 2, claims: true},
}

// longestWalk is how long a receiver waits for a sender that looks for something to send.
const longestWalk = 10 * time.Minute

// From each message of one side on, the other receives nothing, or only heartbeats, without or with progress.
// Either way it must end in time with a timeout.
func TestPeerThatStopsIsGivenUp(t *testing.T) {
	for silence, stop := range silences {
		for name, sc := range allSweepScenarios() {
			sc.Idle = 3 * time.Second
			for _, from := range []wire.Side{wire.Host, wire.DPU} {
				t.Run(fmt.Sprint(silence, " ", from, ", ", name), func(t *testing.T) {
					stopEverywhere(t, sc, from, stop)
				})
			}
		}
	}
}

// stoppingPeer has a side stop working with message n.
func stoppingPeer(from wire.Side, n int, stop silencing) (with injection, stopped *atomic.Bool) {
	stopped = new(atomic.Bool)
	return injection{
		message: func(at wire.Side, i int, message []byte) dmaxfertest.Delivery {
			if at != from || i < n {
				return dmaxfertest.Delivery{Message: message}
			}
			said := stop.say(i, message)
			if !bytes.Equal(said, message) {
				stopped.Store(true)
			}
			return dmaxfertest.Delivery{Message: said}
		},
		wish: func(o *Options) {
			if o.Side == from {
				o.IdleTimeout = time.Hour // it is for the other to end this
			}
		},
	}, stopped
}

func stopEverywhere(t *testing.T, sc scenario, from wire.Side, stop silencing) {
	t.Helper()
	for n := stop.from + firstOfSweep(); n < sweepLimit; n += sweepStep {
		c := newOracle(t, sc, fault{Kind: peerSilent})
		disks := c.stage()
		with, stopped := stoppingPeer(from, n, stop)
		e := c.run(disks, fault{}, with)
		if !stopped.Load() {
			c.mustSucceed("without the fault", e)
			return
		}
		a := c.attempts()
		switch {
		case stop.claims && sc.Tree != nil:
			a.tolerance = longestWalk
		case stop.claims && a.last.ended.Load():
			a.tolerance = job.PeerRenameTime // it may be renaming the file
		}
		a.inTime(e)
		c.judge(e)
		a.mustEndAs(e, oneOf(wire.AbortPeer))
		if t.Failed() {
			t.Fatalf("message %d: %v", n, e.errs)
		}
	}
	t.Fatal("the copy does not end")
}

// Neither side knows the other's idle timeout. A receiver that works for longer than the sender's, and would itself
// wait for very long, still says often enough that it lives and gets further.
func TestUnequalIdleTimeouts(t *testing.T) {
	for name, sc := range sweepScenarios() {
		for _, senderIdle := range []time.Duration{time.Millisecond, 200 * time.Millisecond, 450 * time.Millisecond} {
			t.Run(fmt.Sprint(name, ", ", senderIdle), func(t *testing.T) {
				sc.Idle, sc.SenderIdle, sc.Bandwidth = time.Hour, senderIdle, 16384
				c := &checker{scenario: sc, t: t}
				disks := c.stage()
				c.mustSucceed("with unequal idle timeouts", c.run(disks, fault{}, injection{}))
			})
		}
	}
}

// A sender whose chunks overlap violates the protocol, although each of its messages is valid.
func TestOverlappingChunksAreThePeersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := disktest.NewMemory("/files")
		o := Options{
			Options: role.Options{Side: wire.DPU, IdleTimeout: time.Second, Chunk: 4096, Depth: 4},
			FS:      on, File: simPath,
		}
		b := dmaxfertest.NewBus(dmaxfertest.NoDeviceFaults())
		host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
		defer host.Close()
		ended := make(chan error, 1)
		go func() {
			defer dpu.Close()
			file, err := o.find(context.Background())
			if err == nil {
				o.paths = simPaths(true)
				_, err = peer{o, file, dpu, b.Memory(1)}.transfer(context.Background())
			}
			ended <- err
		}()
		const size = 3 * 4096
		session := lead(t, host, size)
		window := make([]byte, 4*4096)
		b.Put("window", window)
		say(t, host, func() ([]byte, error) { return session.Window(0x1000, []byte("window")) })
		say(t, host, func() ([]byte, error) { return session.Transfer(nil) })
		say(t, host, func() ([]byte, error) {
			message, _, err := session.Entries(nil, []wire.Entry{
				{Kind: wire.EntryFile, Flags: wire.EntryChunked, Size: size},
			})
			return message, err
		})
		receive(t, host, session, native.Answered)
		say(t, host, func() ([]byte, error) {
			return session.Chunks(nil, []native.Record{
				{Kind: native.DataRecord, Slot: 0, Offset: 0, Length: 4096},
				{Kind: native.DataRecord, Slot: 1, Offset: 2048, Length: 4096},
			})
		})
		mustBe(t, <-ended, wire.ErrMalformed)
		if names := on.Handles(); names != 0 {
			t.Errorf("%d handles are left", names)
		}
	})
}

// lead begins a copy as a host that has a file of noise without a digest.
func lead(t *testing.T, host *comchtest.End, size uint64) *native.Session {
	t.Helper()
	offer := &native.Offer{
		Own: native.Hello{Flags: native.FlagFile, Chunk: 4096, Depth: 4, Software: "test"},
	}
	first := reference.New(wire.Host, reference.Local{HasFile: true, Size: size, Native: offer},
		wire.Limits{MaxMessage: testMessage, MaxFileSize: maxFileSize})
	must(t, host.Send(t.Context(), first.Start()))
	message, err := host.Recv(t.Context())
	must(t, err)
	_, err = first.Receive(message)
	must(t, err)
	must(t, host.Send(t.Context(), offer.Session.Start()))
	receive(t, host, offer.Session, native.Planned)
	return offer.Session
}

func say(t *testing.T, on *comchtest.End, make func() ([]byte, error)) {
	t.Helper()
	message, err := make()
	must(t, err)
	must(t, on.Send(t.Context(), message))
}

// receive waits for an event, past heartbeats.
func receive(t *testing.T, on *comchtest.End, session *native.Session, want native.Event) {
	t.Helper()
	for {
		message, err := on.Recv(t.Context())
		must(t, err)
		step, err := session.Receive(message)
		must(t, err)
		if step.Event == want {
			return
		}
	}
}

// A slow stream is progress, although a chunk of it takes longer than the idle timeout.
func TestSlowStreams(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for _, slow := range []wire.Side{sender, sender.Other()} {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			sc.Chunk, sc.FromStream, sc.ToStream = 1<<20, slow == sender, slow != sender
			sc.content = noise(rand.New(rand.NewPCG(1, 2)), 1<<20, false)
			c := &checker{scenario: sc, t: t}
			e := c.run(sc.newDisks(), fault{}, injection{wish: func(o *Options) {
				o.Stdin, o.Stdout = trickling(o.Stdin), trickling(o.Stdout)
			}})
			c.mustSucceed("although the "+slow.String()+"'s stream is slow", e)
		}
	})
}

// A bandwidth so low that a chunk takes longer than the idle timeout is the user's choice, and no stall.
func TestRunPaced(t *testing.T) {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when each bubble begins
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for _, paced := range []wire.Side{sender, sender.Other()} {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			sc.Idle = 200 * time.Millisecond
			c := &checker{scenario: sc, t: t}
			e := c.run(sc.newDisks(), fault{}, injection{wish: func(o *Options) {
				if o.Side == paced {
					o.Bandwidth = 2 * sc.Chunk // half a second for each of three chunks
				}
			}})
			c.mustSucceed("although the "+paced.String()+" has a low limit", e)
			if took := e.ended[paced].Sub(began); took < 1500*time.Millisecond {
				t.Errorf("the copy took %s, as if there were no limit", took)
			}
		}
	})
}

// trickle is a stream that is slow with each byte.
type trickle struct{ disk.File }

func trickling(open func() (disk.File, error)) func() (disk.File, error) {
	return func() (disk.File, error) {
		file, err := open()
		return trickle{file}, err
	}
}

func (f trickle) Read(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p)) * 4 * time.Microsecond)
	return f.File.Read(p)
}

func (f trickle) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p)) * 4 * time.Microsecond)
	return f.File.Write(p)
}
