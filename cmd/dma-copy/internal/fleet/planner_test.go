package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fleet"
)

// Most copies of a fleet succeed.
var outcomes = []fleet.Outcome{
	fleet.Received, fleet.Received, fleet.Received, fleet.PeerFailed, fleet.RelayFailed, fleet.NotRelayed,
}

// TestPlanner ends copies in any order with any outcome, and checks the bounds at each step. In the end each peer has
// received or failed.
func TestPlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers := rapid.IntRange(0, 40).Draw(t, "peers")
		bounds := fleet.Bounds{
			Parallel: rapid.IntRange(1, 5).Draw(t, "parallel"), Fanout: rapid.IntRange(0, 3).Draw(t, "fanout"),
			Relays: rapid.IntRange(1, 6).Draw(t, "relays"),
		}
		m := &model{
			t: t, bounds: bounds, done: map[int]fleet.Outcome{}, broken: map[int]bool{}, sourceOnly: map[int]bool{},
		}
		p := fleet.NewPlanner(peers, bounds)
		for peer := range peers {
			if rapid.IntRange(0, 4).Draw(t, "direct") == 0 {
				p.Direct(peer)
				m.broken[peer], m.sourceOnly[peer] = true, true
			}
		}
		for {
			for a, is := p.Next(); is; a, is = p.Next() {
				m.start(a)
			}
			if len(m.running) == 0 {
				break
			}
			i := rapid.IntRange(0, len(m.running)-1).Draw(t, "which")
			o := rapid.SampledFrom(outcomes).Draw(t, "outcome")
			a := m.end(i, &o)
			p.End(a, o)
		}
		if len(m.done) != peers || p.Waiting() != 0 {
			t.Fatalf("%d of %d peers have ended, and %d wait", len(m.done), peers, p.Waiting())
		}
	})
}

// model checks what a Planner permits.
type model struct {
	t       *rapid.T
	bounds  fleet.Bounds
	running []fleet.Assignment
	done    map[int]fleet.Outcome
	broken  map[int]bool // peers that do not send

	sourceOnly map[int]bool // peers that only the source sends to
}

func (m *model) start(a fleet.Assignment) {
	sent := 0
	relays := 0
	for _, r := range m.running {
		if r.To == a.To {
			m.t.Fatalf("%d receives twice", a.To)
		}
		if r.From == a.From {
			sent++
		}
		if r.From != fleet.Source {
			relays++
		}
	}
	outcome, ended := m.done[a.From]
	switch {
	case a.From == fleet.Source && sent >= m.bounds.Parallel:
		m.t.Fatalf("the source sends %d copies", sent+1)
	case a.From != fleet.Source && (sent >= m.bounds.Fanout || relays >= m.bounds.Relays):
		m.t.Fatalf("%d sends %d copies, all relays %d", a.From, sent+1, relays+1)
	case a.From != fleet.Source && (!ended || outcome != fleet.Received || m.broken[a.From]):
		m.t.Fatalf("%d is no relay", a.From)
	case a.From != fleet.Source && m.sourceOnly[a.To]:
		m.t.Fatalf("%d receives from %d", a.To, a.From)
	}
	if _, again := m.done[a.To]; again {
		m.t.Fatalf("%d receives again", a.To)
	}
	m.running = append(m.running, a)
}

func (m *model) end(i int, o *fleet.Outcome) fleet.Assignment {
	a := m.running[i]
	m.running = slices.Delete(m.running, i, i+1)
	notByRelay := *o == fleet.RelayFailed || *o == fleet.NotRelayed
	switch {
	case notByRelay && a.From == fleet.Source:
		*o = fleet.PeerFailed
		m.done[a.To] = *o
	case notByRelay:
		m.broken[a.From] = m.broken[a.From] || *o == fleet.RelayFailed
		m.sourceOnly[a.To] = true
	default:
		m.done[a.To] = *o
	}
	return a
}

// TestSourceFollowsTheList lets the source send to direct peers and to others in the order of the list, while a relay
// takes only others.
func TestSourceFollowsTheList(t *testing.T) {
	p := fleet.NewPlanner(6, fleet.Bounds{Parallel: 1, Fanout: 1, Relays: 1})
	for _, peer := range []int{4, 1, 2} {
		p.Direct(peer)
	}
	var sent []fleet.Assignment
	for a, is := p.Next(); is; a, is = p.Next() {
		sent = append(sent, a)
		if a.From == fleet.Source {
			p.End(a, fleet.Received)
		}
	}
	source := fleet.Source
	want := []fleet.Assignment{{source, 0}, {0, 3}, {source, 1}, {source, 2}, {source, 4}, {source, 5}}
	if !slices.Equal(sent, want) || p.Waiting() != 0 {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

// TestRun makes copies of which each takes a second: those that Parallel permits run at the same time.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := fleet.NewPlanner(10, fleet.Bounds{Parallel: 4}), time.Now()
		var ended []int
		send := func(_ context.Context, a fleet.Assignment) (fleet.Outcome, int) {
			time.Sleep(time.Second)
			return fleet.Received, a.To
		}
		fleet.Run(t.Context(), p, send, func(e fleet.End[int]) bool {
			ended = append(ended, e.Result)
			return true
		})
		if slices.Sort(ended); !slices.Equal(ended, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("ended %v", ended)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestRunStops ends the context, or the caller's interest, while copies run: these end, and no other begins.
func TestRunStops(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			p := fleet.NewPlanner(10, fleet.Bounds{Parallel: 3})
			stop := errors.New("stop")
			ended := 0
			send := func(ctx context.Context, a fleet.Assignment) (fleet.Outcome, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(a.To+1) * time.Second):
				}
				return fleet.Received, context.Cause(ctx)
			}
			fleet.Run(ctx, p, send, func(e fleet.End[error]) bool {
				ended++
				if cancelled {
					cancel(stop)
				}
				return false
			})
			cancel(nil)
			if ended != 3 || p.Waiting() != 7 {
				t.Errorf("cancelled %t: %d ended, %d wait", cancelled, ended, p.Waiting())
			}
		})
	}
}
