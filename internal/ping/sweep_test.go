//go:build cgo

package ping

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sweepMessages is how many messages each side sends for two round trips of each side.
const sweepMessages = 7

// Each message of either side is lost, cut short or replaced by the end of the connection once. The side that misses it
// fails, and so does the other one, unless it was the last message of all.
func TestEveryMessageFails(t *testing.T) {
	p := newPair(t, "")
	for name, fault := range map[string]func(n int) comchtest.Fault{
		"lost":      comchtest.Drop,
		"cut":       comchtest.Cut,
		"truncated": func(n int) comchtest.Fault { return comchtest.Truncate(n, 7) },
	} {
		for _, from := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
			for n := range sweepMessages {
				t.Run(fmt.Sprintf("%s, message %d of the %s", name, n, from), func(t *testing.T) {
					faults := [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}
					faults[from] = fault(n)
					errs := p.converse(t, faults)
					if !failsAs(name, errs[from.Other()]) {
						t.Errorf("%s: %v", from.Other(), errs[from.Other()])
					}
					last := from == negotiate.DPU && n == sweepMessages-1
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
		return errors.Is(err, negotiate.ErrPingLost)
	}
	return errors.Is(err, negotiate.ErrMalformed)
}

// converse runs both sides over a channel in memory, in virtual time, with two round trips of each.
func (p *pair) converse(t *testing.T, faults [2]comchtest.Fault) (errs [2]error) {
	synctest.Test(t, func(t *testing.T) { errs = p.converseNow(t, faults) })
	return errs
}

// converseNow is converse within a bubble of virtual time.
func (p *pair) converseNow(t *testing.T, faults [2]comchtest.Fault) (errs [2]error) {
	var ends [2]*comchtest.End
	ends[negotiate.Host], ends[negotiate.DPU] = comchtest.NewPair(4080, faults[negotiate.Host], faults[negotiate.DPU])
	var running sync.WaitGroup
	for i, end := range ends {
		o := p.options[i]
		o.Count, o.IdleTimeout, o.Notify = 2, time.Second, func(Event) {}
		running.Go(func() {
			_, errs[i] = newConversation(o, end).run(t.Context(), end.Close)
		})
	}
	running.Wait()
	return errs
}

func TestFaultlessChannel(t *testing.T) {
	p := newPair(t, "")
	for side, err := range p.converse(t, [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}) {
		if err != nil || errors.Is(err, job.ErrHung) {
			t.Errorf("%s: %v", negotiate.Side(side), err)
		}
	}
}

// Two sides that refuse each other at the same time need not wait for each other: in virtual time none passes.
func TestBothRefuse(t *testing.T) {
	p := newPair(t, "")
	p.options[negotiate.DPU].Size = 4080
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for side, err := range p.converseNow(t, [2]comchtest.Fault{comchtest.Faultless, comchtest.Faultless}) {
			if !errors.Is(err, negotiate.ErrPingSize) {
				t.Errorf("%s: %v", negotiate.Side(side), err)
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
	o := p.options[negotiate.DPU]
	o.IdleTimeout, o.Notify = time.Second, func(Event) {}
	synctest.Test(t, func(t *testing.T) {
		peer := &pair{t: t}
		host, dpu := comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
		var err error
		var running sync.WaitGroup
		running.Go(func() { _, err = newConversation(o, dpu).run(t.Context(), dpu.Close) })
		peer.send(host, negotiate.AppendGreeting(nil, someGreeting), negotiate.AppendText(nil, "x"))
		for number := range someGreeting.Count {
			time.Sleep(o.IdleTimeout * 6 / 10)
			peer.send(host, negotiate.AppendPing(nil, negotiate.Ping{Number: number, Payload: make([]byte, 8)}))
		}
		peer.send(host, negotiate.AppendAbort(nil, negotiate.AbortInterrupted, "bye"))
		running.Wait()
		if told, is := errors.AsType[*negotiate.PeerAborted](err); !is || told.Text != "bye" {
			t.Errorf("got %v", err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
}
