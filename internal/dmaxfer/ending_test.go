package dmaxfer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The end of a transfer, and what can still be undone.

// runWith runs a small transfer in which when is called for every message, and decides how it is delivered.
func runWith(
	t *testing.T, sender wire.Side, when func(a *attempt, message []byte) dmaxfertest.Delivery,
) (*checker, results, *attempt) {
	t.Helper()
	sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
	c := &checker{scenario: sc, t: t}
	c.disks = sc.newDisks()
	var e results
	synctest.Test(t, func(*testing.T) {
		a := newAttempt(sc, c.disks, fault{})
		a.message = func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery { return when(a, message) }
		c.last = a
		e = a.run()
		synctest.Wait()
	})
	c.nothingIsOpen()
	return c, e, c.last
}

func isMessage(message []byte, is wire.Type) bool {
	return len(message) >= 4 && wire.Type(binary.LittleEndian.Uint32(message)) == is
}

// isEnd reports whether a message permits the receiver to commit a file.
func isEnd(message []byte) bool {
	return isMessage(message, wire.TypeEnd) || isMessage(message, wire.TypePack)
}

func isResults(message []byte) bool { return isMessage(message, wire.TypeResults) }

func isFinish(message []byte) bool { return isMessage(message, wire.TypeFinish) }

func isFinished(message []byte) bool { return isMessage(message, wire.TypeFinished) }

func bothSides(t *testing.T, run func(t *testing.T, sender wire.Side)) {
	for _, sender := range []wire.Side{wire.Host, wire.DPU} {
		t.Run(fmt.Sprint("from the ", sender), func(t *testing.T) { run(t, sender) })
	}
}

// A side that is interrupted when the receiver may commit ends as the other does: with the file, or without it.
func TestInterruptedAfterTheEnd(t *testing.T) {
	for _, role := range []string{"sender", "receiver"} {
		t.Run(role, func(t *testing.T) {
			bothSides(t, func(t *testing.T, sender wire.Side) {
				interrupted := sender
				if role == "receiver" {
					interrupted = sender.Other()
				}
				c, e := runInterruptedAt(t, sender, interrupted, isEnd)
				mustAgreeAfterInterruption(t, c, e)
				c, e = runInterruptedAt(t, sender, interrupted, isResults)
				c.mustSucceed("although the "+role+" was interrupted after the commit", e)
			})
		})
	}
}

// runInterruptedAt interrupts a side when a certain message passes.
func runInterruptedAt(
	t *testing.T, sender, interrupted wire.Side, is func(message []byte) bool,
) (*checker, results) {
	t.Helper()
	c, e, _ := runWith(t, sender, func(a *attempt, message []byte) dmaxfertest.Delivery {
		if is(message) {
			a.stop[interrupted](errInterrupted)
		}
		return dmaxfertest.Delivery{Message: message}
	})
	return c, e
}

// mustAgreeAfterInterruption expects the same outcome on both sides, which is that of the target.
func mustAgreeAfterInterruption(t *testing.T, c *checker, e results) {
	t.Helper()
	if c.done() {
		c.mustSucceed("although a side was interrupted", e)
		return
	}
	for side, err := range e.errs {
		if exit.Code(err) != int(wire.AbortInterrupted) {
			t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
		}
	}
	c.finalName(e)
}

// The final rename is not interrupted, and the sender learns of it, even if it is the one that was interrupted.
func TestInterruptedDuringTheRename(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for i := range 40 { // a message that may be sent or not goes out in some of them
			interrupted := wire.Side(i % 2)
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			c := &checker{scenario: sc, t: t}
			c.disks = sc.newDisks()
			synctest.Test(t, func(*testing.T) {
				a := newAttempt(sc, c.disks, fault{})
				c.last = a
				a.file = func(side wire.Side, _ int, op, _ string) *disktest.Fault {
					if side != sender && op == "rename" {
						a.stop[interrupted](errInterrupted)
					}
					return nil
				}
				c.mustSucceed("although the "+interrupted.String()+" was interrupted", a.run())
			})
		}
	})
}

// The calls that rename the target do not report how far they are. The sender waits for them, but not without end.
func TestSlowRename(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for pause, want := range map[time.Duration]error{
			job.PeerRenameTime * 3 / 4: nil, job.PeerRenameTime + 3*time.Second: wire.ErrOutcomeUnknown,
		} {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			c := &checker{scenario: sc, t: t}
			sleepInRename := func(side wire.Side, _ int, op, _ string) *disktest.Fault {
				if side != sender && op == "rename" {
					time.Sleep(pause)
				}
				return nil
			}
			e := c.run(sc.newDisks(), fault{}, injection{file: sleepInRename})
			must(t, e.errs[sender.Other()])
			if err := e.errs[sender]; !errors.Is(err, want) {
				t.Errorf("after %s the sender says %v", pause, err)
			}
		}
	})
}

// A device may wait for the host before it opens its memory. Meanwhile the DPU still says that it lives, and hears that
// the host does not any more.
func TestWindowThatIsSlowToOpen(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for name, want := range map[string]error{"living": nil, "silent": job.ErrIdle} {
			t.Run(name+" host", func(t *testing.T) {
				sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
				var began, ended atomic.Bool
				var beats atomic.Int64
				c, device := &checker{scenario: sc, t: t}, dmaxfertest.NoDeviceFaults()
				device.Open = func(what string) error {
					if what != "engine" || began.Swap(true) {
						return nil
					}
					time.Sleep(sc.Idle * 3 / 4)
					if ended.Store(true); want != nil {
						return dmaxfertest.ErrUnreachable
					}
					return nil
				}
				countBeats := func(from wire.Side, _ int, m []byte) dmaxfertest.Delivery {
					if from == wire.DPU && began.Load() && !ended.Load() {
						beats.Add(1)
					}
					if from == wire.Host && began.Load() && want != nil {
						return dmaxfertest.Delivery{}
					}
					return dmaxfertest.Delivery{Message: m}
				}
				e := c.run(sc.newDisks(), fault{}, injection{device: device, message: countBeats})
				if err := e.errs[wire.DPU]; !errors.Is(err, want) || beats.Load() < 3 {
					t.Errorf("the DPU says %v, after %d beats", err, beats.Load())
				}
			})
		}
	})
}

// A side that is interrupted after the connection and before the first message of the other tells it why.
func TestInterruptedBeforeTheFirstMessage(t *testing.T) {
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		t.Run(side.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { interruptFirst(t, side) })
		})
	}
}

func interruptFirst(t *testing.T, side wire.Side) {
	on := disktest.NewMemory("/files")
	o := Options{Options: role.Options{Side: side, IdleTimeout: time.Minute}, FS: on, File: simPath}
	host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	own, other := host, dpu
	if side == wire.DPU {
		own, other = dpu, host
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer own.Close()
		file, err := o.find(ctx)
		if err == nil {
			o.paths = simPaths(true)
			_, err = peer{o, file, own, dmaxfertest.NewBus(dmaxfertest.NoDeviceFaults()).Memory(1)}.transfer(ctx)
		}
		ended <- err
	}()
	synctest.Wait()
	interrupt(exit.Interrupted{Signal: syscall.SIGTERM})
	synctest.Wait()
	session := meetNative(t, side.Other(), other)
	word, err := other.Recv(t.Context())
	must(t, err)
	if _, err := session.Receive(word); exit.Code(err) != int(wire.AbortTerminated) {
		t.Errorf("the %s receives %v", side.Other(), err)
	}
	must(t, other.Close())
	mustBe(t, <-ended, exit.Interrupted{Signal: syscall.SIGTERM})
}

// meetNative is the beginning of a conversation, as a side that has a file.
func meetNative(t *testing.T, side wire.Side, end *comchtest.End) *native.Session {
	t.Helper()
	offer := &native.Offer{
		Own: native.Hello{Flags: native.FlagFile, Chunk: 4096, Depth: 4, Software: "test"},
	}
	first := reference.New(side, reference.Local{HasFile: true, Size: 1, Native: offer},
		wire.Limits{MaxMessage: testMessage, MaxFileSize: maxFileSize})
	if opening := first.Start(); opening != nil {
		must(t, end.Send(t.Context(), opening))
	}
	message, err := end.Recv(t.Context())
	must(t, err)
	step, err := first.Receive(message)
	must(t, err)
	if step.Reply != nil {
		must(t, end.Send(t.Context(), step.Reply))
	}
	return offer.Session
}

// A connection that is lost after END does not keep the file from its name, and leaves the sender in doubt until it has
// the result.
func TestLostAfterTheEnd(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		c, e, _ := runWith(t, sender, func(_ *attempt, message []byte) dmaxfertest.Delivery {
			return dmaxfertest.Delivery{Message: message, Cut: isResults(message)}
		})
		mustBeInDoubt(t, c, e)
		c, e, _ = runWith(t, sender, func(_ *attempt, message []byte) dmaxfertest.Delivery {
			return dmaxfertest.Delivery{Message: message, Cut: isFinished(message)}
		})
		c.mustSucceed("although the last message was lost", e)
	})
}

func mustBeInDoubt(t *testing.T, c *checker, e results) {
	t.Helper()
	mustBe(t, e.errs[c.Sender], wire.ErrOutcomeUnknown)
	if exit.Code(e.errs[c.Sender]) != int(wire.AbortPeer) {
		t.Errorf("the sender says %d", exit.Code(e.errs[c.Sender]))
	}
	must(t, e.errs[c.Sender.Other()])
	c.finalName(e)
	if !c.done() {
		t.Error("the file is not there")
	}
	c.names(false)
}

// The receiver compares the digests, and nothing wrong is kept.
func TestDigestsThatDiffer(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		c, e, _ := runWith(t, sender, func(_ *attempt, message []byte) dmaxfertest.Delivery {
			if isEnd(message) {
				message[len(message)-1] ^= 1 // of the digest
			}
			return dmaxfertest.Delivery{Message: message}
		})
		for side, err := range e.errs {
			if exit.Code(err) != int(wire.AbortDigest) {
				t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
			}
		}
		c.finalName(e)
		c.names(false)
	})
}

// A sender that is interrupted while it waits for the result waits a moment longer, and no more.
func TestInterruptedWithoutAResult(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		var interrupted atomic.Pointer[time.Time] // both directions are delivered concurrently
		c, e, _ := runWith(t, sender, func(a *attempt, message []byte) dmaxfertest.Delivery {
			if isResults(message) {
				now := time.Now()
				interrupted.Store(&now)
				a.stop[sender](errInterrupted)
			}
			if interrupted.Load() != nil {
				return dmaxfertest.Delivery{}
			}
			return dmaxfertest.Delivery{Message: message}
		})
		mustBeInDoubt(t, c, e)
		if took := e.ended[sender].Sub(*interrupted.Load()); took > 2*job.PartingTime {
			t.Errorf("the interrupted sender took %s", took)
		}
	})
}

// A single message that cannot be sent is no end of the connection: what arrives after it still counts.
func TestBeatFailsBeforeTheLastMessage(t *testing.T) {
	for name, is := range map[string]struct{ delayed, since func(message []byte) bool }{
		"receiver": {isFinish, isResults},
		"sender":   {isResults, isEnd},
	} {
		t.Run(name, func(t *testing.T) {
			bothSides(t, func(t *testing.T, sender wire.Side) {
				sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
				c := &checker{scenario: sc, t: t}
				e := c.run(sc.newDisks(), fault{}, injection{
					message: func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery {
						if is.delayed(message) {
							time.Sleep(2 * job.LongestPulse)
						}
						return dmaxfertest.Delivery{Message: message}
					},
					conn: func(_ wire.Side, conn comch.Conn) comch.Conn {
						return &stutteringConn{Conn: conn, since: is.since}
					},
				})
				c.mustSucceed("although a heartbeat could not be sent", e)
			})
		})
	}
}

// stutteringConn does not send the first heartbeat after a certain message.
type stutteringConn struct {
	comch.Conn
	since func(message []byte) bool
	next  bool
}

func (s *stutteringConn) Send(ctx context.Context, message []byte) error {
	if _, err := native.DecodeBeat(message); err == nil && s.next {
		s.next = false
		return &doca.Error{Op: "doca_comch_connection_send", Code: doca.CodeIOFailed}
	}
	s.next = s.next || s.since(message)
	return s.Conn.Send(ctx, message)
}

// What waits in a stream ends with an interruption, on the side that waits and on the other.
func TestInterruptedInAStream(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		for _, waits := range []wire.Side{sender, sender.Other()} {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			sc.Idle, sc.FromStream, sc.ToStream = time.Minute, waits == sender, waits != sender
			c := &checker{scenario: sc, t: t, fault: fault{Kind: streamStalls}}
			c.disks = sc.newDisks()
			synctest.Test(t, func(t *testing.T) {
				a := newAttempt(sc, c.disks, c.fault)
				c.last = a
				because := errors.Join(errInterrupted)
				time.AfterFunc(10*time.Second, func() { a.stop[waits](because) })
				began := time.Now()
				e := a.run()
				synctest.Wait()
				if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
					t.Errorf("it took %s", took)
				}
				c.agreement(e)
				mustBe(t, e.errs[waits], errInterrupted)
			})
			c.nothingIsOpen()
		}
	})
}

// Some file systems say as late as at the close that they have lost what was written, be it to a file or to a stream.
func TestOutputThatCannotBeClosed(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
		sc.ToStream = true
		c := &checker{scenario: sc, t: t}
		e := c.run(sc.newDisks(), fault{}, injection{wish: func(o *Options) {
			open := o.Stdout
			o.Stdout = func() (disk.File, error) {
				file, err := open()
				return unclosable{file}, err
			}
		}})
		for side, err := range e.errs {
			if exit.Code(err) != int(wire.AbortTarget) {
				t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
			}
		}
	})
}

type unclosable struct{ disk.File }

func (f unclosable) Close() error { return errors.Join(f.File.Close(), syscall.EDQUOT) }

// A receiver that has committed does not wait without end for a sender that sends heartbeats instead of disconnecting.
func TestSenderThatDoesNotHangUp(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
		c := &checker{scenario: sc, t: t}
		var stays *stayingConn
		e := c.run(sc.newDisks(), fault{}, injection{conn: func(side wire.Side, conn comch.Conn) comch.Conn {
			if side != sender {
				return conn
			}
			stays = &stayingConn{Conn: conn}
			return stays
		}})
		c.mustSucceed("although the sender did not hang up", e)
		if !stays.left {
			t.Error("the receiver would wait for as long as the sender wants it to")
		}
	})
}

// stayingConn beats for much longer than the idle timeout before it closes, unless the other side has left.
type stayingConn struct {
	comch.Conn
	left bool
}

func (s *stayingConn) Close() error {
	for work := range uint64(100) {
		beat := native.AppendBeat(nil, native.Beat{Phase: 100, Work: work})
		if s.left = s.Send(context.Background(), beat) != nil; s.left {
			break
		}
		time.Sleep(job.LongestPulse)
	}
	return s.Conn.Close()
}
