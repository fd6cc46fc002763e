package native

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// testMessage is the longest message in bytes.
const testMessage = 512

// started returns the session of a DPU that waits for the host's HELLO.
func started(t *testing.T) *protocol.Session {
	t.Helper()
	session, err := protocol.New(
		wire.DPU, protocol.Supported.Max, protocol.Hello{Chunk: 4096, Depth: 1},
		wire.Limits{MaxMessage: testMessage},
	)
	must(t, err)
	session.Start()
	return session
}

// A side that cannot send any more still reads why.
func TestLastMessageCountsMoreThanTheLoss(t *testing.T) {
	host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	must(t, host.Send(t.Context(), protocol.AppendAbort(nil, wire.AbortTarget, "no room")))
	must(t, host.Close())
	c := role.Config{
		Options: role.Options{Side: wire.DPU, IdleTimeout: time.Second},
		Conn:    dpu, File: &job.LocalFile{},
	}
	tr := newTransfer(c, started(t))
	_, _ = tr.receive(t.Context())
	err := tr.explain(t.Context(), comch.ErrPeerLost)
	if told, is := errors.AsType[*protocol.PeerAborted](err); !is || told.Code != wire.AbortTarget {
		t.Errorf("got %v, want what the host said", err)
	}
}

// A failure that is noticed together with the first message of the reference protocol does not keep that from going on.
func TestReturnToReferenceCountsMoreThanTheLoss(t *testing.T) {
	host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	hello := protocol.Hello{Chunk: 4096, Depth: 1}
	offer := &protocol.Offer{Own: hello}
	first := reference.New(wire.DPU, reference.Local{Marked: true, Native: offer},
		wire.Limits{MaxMessage: testMessage, MaxFileSize: 1})
	first.Start()
	versions := protocol.Supported
	direction := reference.Direction{FileInHost: true, Size: 1, Offer: [3]byte{0xDC, versions.Min, versions.Max}}
	_, err := first.Receive(direction.Encode())
	must(t, err)
	offer.Session.Start()
	must(t, host.Send(t.Context(), reference.Export{Address: 4096, Descriptor: []byte("descriptor")}.Encode()))
	must(t, host.Close())
	config := role.Config{Options: role.Options{Side: wire.DPU}, Conn: dpu, File: &job.LocalFile{}}
	tr := newTransfer(config, offer.Session)
	if err := tr.explain(t.Context(), comch.ErrPeerLost); err != nil || !tr.reference {
		t.Errorf("got %v, want to go on in the reference protocol", err)
	}
}

// lateConn is a connection that has ended, which is seen only after the time to look for that.
type lateConn struct{ *comch.PipeEnd }

func (c lateConn) Done() <-chan struct{} {
	time.Sleep(2 * job.LossNotice)
	return c.PipeEnd.Done()
}

// A process that did not run while it waited for the cause still reports a loss that is known by then.
func TestLateLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 { // whichever is chosen
			one, other := comch.Pipe(testMessage)
			must(t, one.Close())
			c := role.Config{
				Options: role.Options{Side: wire.DPU},
				Conn:    lateConn{other}, File: &job.LocalFile{},
			}
			tr := newTransfer(c, started(t))
			mustBe(t, tr.explain(t.Context(), doca.CodeIOFailed), wire.ErrPeerLost)
			must(t, other.Close())
		}
	})
}

// What an interruption breaks is its consequence, whichever is noticed first.
func TestInterruptionIsTheCause(t *testing.T) {
	interrupted := errors.New("interrupted")
	_, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	tr := newTransfer(role.Config{Options: role.Options{Side: wire.DPU}, Conn: dpu, File: &job.LocalFile{}}, started(t))
	tr.watch.start(wire.DPU, time.Hour)
	defer tr.watch.stop()
	tr.owner.acquire()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(interrupted)
	for range 50 { // whichever is chosen
		tr.Run(ctx, func(context.Context) role.Call {
			return role.FailWith(job.NewError(job.ErrTarget, nil, "", "the stream was closed"))
		})
		tr.jobs.Wait()
		var err error
		for err == nil {
			err = tr.step(ctx, ctx)
		}
		mustBe(t, err, interrupted)
		tr.posted = newMailbox()
	}
}

// A message waits for a full queue for as long as the peer may still be silent, counted in pulses.
func TestGraceIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l liveness
		l.start(wire.Host, time.Second)
		defer l.stop()
		l.silent = 4
		lent := make(semaphore, 1)
		lent.acquire()
		ctx := l.untilSilent(t.Context(), lent)
		began := time.Now()
		<-ctx.Done()
		mustBe(t, context.Cause(ctx), job.ErrIdle)
		if took := time.Since(began); took != time.Duration(l.limit-l.silent+1)*l.interval {
			t.Errorf("it took %s", took)
		}
		if !lent.tryAcquire() {
			t.Error("the transfer cannot be described while the message waits")
		}
		lent.release()
		ctx.end()
		if got, want := (&transfer{watch: l}).age(l.silent), job.Age(l.since(l.limit+1)); got != want {
			t.Errorf("the peer has been silent for %s, want %s", got, want)
		}
		waited, unused := l.untilSilent(t.Context(), lent), l.untilSilent(t.Context(), lent)
		_ = waited.Done()
		waited.end() // and the bubble ends: nothing is left
		unused.end()
	})
}

// A mailbox keeps what is posted in its order, delivers a token as long as there are calls, and never blocks.
func TestMailbox(t *testing.T) {
	m := newMailbox()
	var called []int
	for i := range 100 {
		m.add(func(context.Context) error { called = append(called, i); return nil })
	}
	if len(m.arrived) != 1 {
		t.Errorf("%d tokens", len(m.arrived))
	}
	for len(m.arrived) > 0 {
		<-m.arrived
		must(t, m.take()(t.Context()))
	}
	if len(called) != 100 || !slices.IsSorted(called) {
		t.Errorf("called %v", called)
	}
}

// No call is lost, whenever it is posted: a token follows each.
func TestMailboxLosesNothing(t *testing.T) {
	const posters, calls = 4, 2000
	m := newMailbox()
	var done atomic.Int64
	var posting sync.WaitGroup
	for range posters {
		posting.Go(func() {
			for range calls {
				m.add(func(context.Context) error { done.Add(1); return nil })
			}
		})
	}
	for done.Load() < posters*calls {
		<-m.arrived
		must(t, m.take()(t.Context()))
	}
	posting.Wait()
}

// What is posted while the transfer is served is done before it waits again, and its error ends the transfer.
func TestPostedErrorEndsTheTransfer(t *testing.T) {
	because := errors.New("a job has failed")
	_, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	tr := newTransfer(role.Config{Options: role.Options{Side: wire.DPU}, Conn: dpu, File: &job.LocalFile{}}, started(t))
	tr.watch.start(wire.DPU, time.Hour)
	defer tr.watch.stop()
	tr.owner.acquire()
	var order []string
	tr.Post(func(context.Context) error {
		order = append(order, "first")
		tr.Post(func(context.Context) error { order = append(order, "third"); return because })
		return nil
	})
	tr.Post(func(context.Context) error { order = append(order, "second"); return nil })
	var err error
	for err == nil {
		err = tr.step(t.Context(), t.Context())
	}
	mustBe(t, err, because)
	if !slices.Equal(order, []string{"first", "second", "third"}) {
		t.Errorf("called %v", order)
	}
}

// What was posted after a call that fails is not lost: the failure may be no reason to end the transfer.
func TestPostedCallsAfterAFailure(t *testing.T) {
	failed := errors.New("failed")
	var done []int
	x := &transfer{posted: newMailbox()}
	for i, err := range []error{nil, failed, nil, nil} {
		x.posted.add(func(context.Context) error {
			done = append(done, i)
			return err
		})
	}
	for i := 0; len(x.posted.arrived) > 0; i++ {
		<-x.posted.arrived
		if err := x.servePosted(t.Context(), t.Context()); (i == 1) != errors.Is(err, failed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []int{0, 1, 2, 3}; !slices.Equal(done, want) {
		t.Errorf("the calls %v were made, want %v", done, want)
	}
}
