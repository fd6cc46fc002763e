package pump

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// distantEngine completes each move after a delay. The delays of several moves overlap.
type distantEngine struct {
	*Copier
	takes time.Duration
	due   []time.Time // completion times of the moves in flight, in order
	most  int         // moves in flight at once
}

func (e *distantEngine) Submit(moves []Move) (int, error) {
	n, err := e.Copier.Submit(moves)
	for range n {
		e.due = append(e.due, time.Now().Add(e.takes))
	}
	e.most = max(e.most, len(e.due))
	return n, err
}

func (e *distantEngine) Poll(into []Moved) int {
	n := 0
	for n < min(len(into), len(e.due)) && !time.Now().Before(e.due[n]) {
		n++
	}
	e.due = e.due[n:]
	return e.Copier.Poll(into[:n])
}

func (e *distantEngine) Reap(_ context.Context, into []Moved) (int, error) {
	if len(e.due) > 0 {
		time.Sleep(time.Until(e.due[0]))
	}
	return e.Poll(into), nil
}

// distantPair returns a transfer whose receiver has a distantEngine.
func distantPair(chunks int, takes time.Duration) (*pair, *distantEngine) {
	p := newPair(64 * chunks)
	p.hostSends, p.lanes, p.slots = true, [2]int{1, 1}, 16
	p.build()
	engine := &distantEngine{Copier: p.copier(), takes: takes}
	p.receiver.lanes[0].copies.engine = engine
	return p, engine
}

// A slow engine gets as many moves as keep it busy. A fast one gets one after the other, so that each chunk is
// processed while it is in the cache.
func TestDepthFollowsTheEngine(t *testing.T) {
	for takes, want := range map[time.Duration]struct{ least, most int }{0: {1, 1}, 10 * time.Millisecond: {4, 16}} {
		synctest.Test(t, func(t *testing.T) {
			p, engine := distantPair(200, takes)
			sent, received := p.run(t.Context())
			must(t, sent)
			must(t, received)
			if engine.most < want.least || engine.most > want.most {
				t.Errorf("%[2]d moves of %[1]s each were in flight, want %+[3]v", takes, engine.most, want)
			}
		})
	}
}

// While the receiver is busy, several chunks share one message in either direction.
func TestChunksShareMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = 400
		p, _ := distantPair(chunks, 0)
		p.source.pause = func() { time.Sleep(time.Millisecond) }
		p.target.pause = func() { time.Sleep(2 * time.Millisecond) }
		sent, received := p.run(t.Context())
		must(t, sent)
		must(t, received)
		if most := chunks/4 + 20; p.wire.messages[0] > most || p.wire.messages[1] > most {
			t.Errorf("%d chunks took %d messages, want at most %d in each direction", chunks, p.wire.messages, most)
		}
	})
}
