package pump

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A chunk that the bandwidth limit allows is stored before the next one waits. Otherwise a slow transfer would progress
// in steps of a whole window, and an interrupted one would keep little.
func TestPacedChunksDoNotWaitForEachOther(t *testing.T) {
	p := newPair(64 * 50)
	p.hostSends, p.lanes, p.slots = false, [2]int{1, 1}, 8
	p.build()
	var allowed int64
	p.receiver.config.Pace = func(_ context.Context, bytes int64) error {
		if waits := allowed - p.stored; waits > 0 {
			t.Errorf("%d bytes were allowed and are not stored", waits)
		}
		allowed += bytes
		return nil
	}
	sent, received := p.run(t.Context())
	must(t, sent)
	must(t, received)
	if allowed != p.stored || allowed == 0 {
		t.Errorf("%d bytes were allowed, %d stored", allowed, p.stored)
	}
}

// A unit that the bandwidth limit allows is fetched before the next one waits, also if a slow engine has several moves
// pending.
func TestPacedUnitsAreFetchedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 8
		allowed := 0
		var g *gathering
		g = newGathering(slots, 1, func(c *ReceiverConfig) {
			c.Pace = func(context.Context, int64) error {
				if waits := len(g.lanes[0].copies.waiting); waits > 0 {
					t.Errorf("%d units were allowed and are not fetched", waits)
				}
				allowed++
				return nil
			}
		})
		engine := &distantEngine{Copier: g.engine.Copier, takes: time.Second}
		g.lanes[0].copies.engine = engine
		for slot := range slots {
			g.takeChunk(slot, slot*10, 10)
		}
		g.mustStore(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, 10)
		if allowed != slots || engine.most < 2 {
			t.Errorf("%d units were allowed, %d moves were in flight at once", allowed, engine.most)
		}
	})
}

// Waiting for the bandwidth limit is a stage of its own, on the side that has the limit. In virtual time nothing else
// takes time.
func TestWaitingForTheLimitIsAStage(t *testing.T) {
	for _, limited := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(64 * 50)
			p.lanes = [2]int{1, 1}
			p.build()
			slow := func(context.Context, int64) error {
				time.Sleep(time.Second)
				return nil
			}
			*[]*func(context.Context, int64) error{&p.sender.config.Pace, &p.receiver.config.Pace}[limited] = slow
			sent, received := p.run(t.Context())
			must(t, sent)
			must(t, received)
			if shares := p.stages[limited].Shares(); shares[RateLimit] < 0.9 || shares.Busiest() != RateLimit {
				t.Errorf("side %d: %v", limited, shares)
			}
			if shares := p.stages[1-limited].Shares(); shares[RateLimit] != 0 {
				t.Errorf("side %d, which has no limit: %v", 1-limited, shares)
			}
		})
	}
}
