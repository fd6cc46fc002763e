//go:build cgo

package ping

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// sweepMessages is how many messages each side sends for two round trips of each side: two greetings, five requests and
// five answers.
const sweepMessages = 12

// Each message of either side is lost, cut short or replaced by the end of the connection once. The side that misses it
// fails, and so does the other one, unless it was the last message of all.
func TestEveryMessageFails(t *testing.T) {
	p := newPair(t, "")
	for name, fault := range map[string]func(n int) comchtest.Fault{
		"lost":      comchtest.Drop,
		"cut":       comchtest.Cut,
		"truncated": func(n int) comchtest.Fault { return comchtest.Truncate(n, 7) },
	} {
		for _, from := range []wire.Side{wire.Host, wire.DPU} {
			for n := range sweepMessages {
				t.Run(fmt.Sprintf("%s, message %d of the %s", name, n, from), func(t *testing.T) {
					faults := [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}
					faults[from] = fault(n)
					errs := p.converse(t, faults)
					if !failsAs(name, errs[from.Other()]) {
						t.Errorf("%s: %v", from.Other(), errs[from.Other()])
					}
					last := from == wire.DPU && n == sweepMessages-1 && name != "cut"
					if (errs[from] == nil) != last {
						t.Errorf("%s: %v", from, errs[from])
					}
				})
			}
		}
	}
}

// failsAs reports whether an error is that of a side that misses a message.
func failsAs(fault string, err error) bool {
	switch fault {
	case "lost":
		return err != nil // the next message is out of order, or there is none
	case "cut":
		return errors.Is(err, ErrLost)
	}
	return errors.Is(err, wire.ErrMalformed)
}

// converse runs both sides over a channel in memory, in virtual time, with two round trips of each.
func (p *pair) converse(t *testing.T, faults [2]comchtest.Fault) (errs [2]error) {
	synctest.Test(t, func(t *testing.T) { errs = p.converseNow(t.Context(), faults, func(Event) {}) })
	return errs
}

// over runs one side over a connection.
func (o Options) over(ctx context.Context, conn comch.Conn) error {
	c, err := begin(ctx, o.Meeting, conn, conn.Close)
	if err != nil {
		return o.reworded(err)
	}
	_, err = o.run(ctx, c)
	return err
}

// converseNow is converse within a bubble of virtual time.
func (p *pair) converseNow(ctx context.Context, faults [2]comchtest.Fault, notify func(Event)) (errs [2]error) {
	var ends [2]*comchtest.End
	ends[wire.Host], ends[wire.DPU] = comchtest.NewPair(4080, faults[wire.Host], faults[wire.DPU])
	var running sync.WaitGroup
	for i, end := range ends {
		o := p.options[i]
		o.Count, o.IdleTimeout, o.Notify = 2, time.Second, notify
		running.Go(func() { errs[i] = o.over(ctx, end) })
	}
	running.Wait()
	return errs
}

func TestFaultlessChannel(t *testing.T) {
	p := newPair(t, "")
	for side, err := range p.converse(t, [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}) {
		if err != nil || errors.Is(err, job.ErrHung) {
			t.Errorf("%s: %v", wire.Side(side), err)
		}
	}
}

// Two sides that give up at the same time need not wait for each other: in virtual time none passes.
func TestBothGiveUp(t *testing.T) {
	p := newPair(t, "")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, interrupt := context.WithCancelCause(t.Context())
		interrupted := exit.Interrupted{Signal: syscall.SIGINT}
		faultless := [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}
		for side, err := range p.converseNow(ctx, faultless, func(Event) { interrupt(interrupted) }) {
			if !errors.Is(err, interrupted) {
				t.Errorf("%s: %v", wire.Side(side), err)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the sides waited for each other for %s", waited)
		}
	})
}

// The idle timeout is for the time without a message: round trips may take longer together.
func TestSlowPeer(t *testing.T) {
	p := newPair(t, "")
	o := p.options[wire.DPU]
	o.IdleTimeout, o.Notify = time.Second, func(Event) {}
	synctest.Test(t, func(t *testing.T) {
		peer := &pair{t: t}
		host, dpu := comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
		var err error
		var running sync.WaitGroup
		running.Go(func() { err = o.over(t.Context(), dpu) })
		peer.send(host, daemonGreeting)
		for range 10 {
			peer.answerNext(host, o.IdleTimeout*6/10)
		}
		peer.send(host, refusal("bye"))
		running.Wait()
		if told, is := errors.AsType[*native.PeerAborted](err); !is || told.Text != "bye" {
			t.Errorf("got %v", err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
}

// answerNext answers the next PING after a while.
func (p *pair) answerNext(conn comch.Conn, after time.Duration) {
	p.t.Helper()
	for {
		message, err := conn.Recv(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		if asked, err := service.DecodePing(message); err == nil {
			time.Sleep(after)
			p.send(conn, service.AppendPong(nil, asked))
			return
		}
	}
}
