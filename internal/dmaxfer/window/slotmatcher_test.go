package window

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// matcherLayout has slots 0, 2 and 4 on lane 0.
var matcherLayout = Layout{Path: wire.PathTLS, Digest: digest.CRC32C, Chunk: 64, Depth: 5, Lanes: 2, Buffers: 3}

// newMatcher returns a SlotMatcher of lane 0, its buffers, and what it has freed.
func newMatcher() (m *SlotMatcher, buffers []byte, freed *[]int64) {
	buffers, freed = make([]byte, 3*matcherLayout.Chunk), new([]int64)
	m = NewSlotMatcher(buffers, matcherLayout, 0, func(from int64) error {
		*freed = append(*freed, from)
		return nil
	})
	return m, buffers, freed
}

// Moves and content come in any order, and slots are used again.
func TestSlotMatcherInAnyOrder(t *testing.T) {
	m, buffers, freed := newMatcher()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		index := int64(random.IntN(3))
		content := make([]byte, 1+random.IntN(int(matcherLayout.Chunk)))
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		move := pump.Move{
			Window: 2 * index * matcherLayout.Chunk, Buffer: index * matcherLayout.Chunk, Length: int64(len(content)),
			Tag: round, Plain: round%3 == 0,
		}
		steps := []func() error{
			func() error { return m.Submit([]pump.Move{move}) },
			func() error { return m.Arrive(uint32(2*index), content, int64(round)) },
		}
		random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		must(t, steps[0]())
		var moved [2]pump.Moved
		if n := m.Take(moved[:]); n != 0 || len(*freed) != round {
			t.Fatalf("round %d: %d moves ended early, %d freed", round, n, len(*freed))
		}
		must(t, steps[1]())
		if m.Waits() || m.Inflight() != 1 || m.Take(moved[:]) != 1 || m.Inflight() != 0 {
			t.Fatalf("round %d: %d moves in flight", round, m.Inflight())
		}
		want := pump.Moved{Tag: round}
		if !move.Plain {
			want.Checked, want.Check = true, digest.Check(digest.CRC32C, content)
		}
		if moved[0] != want || (*freed)[round] != int64(round) ||
			!bytes.Equal(buffers[move.Buffer:][:len(content)], content) {
			t.Fatalf("round %d: got %+v, want %+v", round, moved[0], want)
		}
	}
}

// What a peer sends is checked against the layout and its records.
func TestSlotMatcherRefuses(t *testing.T) {
	for name, run := range map[string]func(m *SlotMatcher) error{
		"no such slot":           func(m *SlotMatcher) error { return m.Arrive(5, make([]byte, 16), 0) },
		"the slot of a lane":     func(m *SlotMatcher) error { return m.Arrive(1, make([]byte, 16), 0) },
		"a very large number":    func(m *SlotMatcher) error { return m.Arrive(1<<32-1, make([]byte, 16), 0) },
		"shorter than announced": func(m *SlotMatcher) error { return m.Arrive(0, make([]byte, 15), 0) },
		"longer than announced":  func(m *SlotMatcher) error { return m.Arrive(0, make([]byte, 17), 0) },
		"a slot twice": func(m *SlotMatcher) error {
			if err := m.Arrive(2, make([]byte, 16), 0); err != nil {
				return errors.New("refused the first one")
			}
			return m.Arrive(2, make([]byte, 16), 0)
		},
	} {
		m, _, _ := newMatcher()
		must(t, m.Submit([]pump.Move{{Length: 16}}))
		if err := run(m); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The lanes share the slots of the window.
func TestLaneSlots(t *testing.T) {
	for depth := range 9 {
		for lanes := 1; lanes <= 3; lanes++ {
			all := 0
			for lane := range lanes {
				all += Layout{Depth: depth, Lanes: lanes}.LaneSlots(lane)
			}
			if all != depth {
				t.Errorf("%d lanes have %d slots of %d", lanes, all, depth)
			}
		}
	}
}

// Without buffers content stays where it has arrived: a move ends when both are there, and nothing is copied or freed.
func TestSlotMatcherInPlace(t *testing.T) {
	m := NewSlotMatcher(nil, matcherLayout, 0, nil)
	move := pump.Move{Window: 2 * matcherLayout.Chunk, Buffer: matcherLayout.Chunk, Length: 3, Tag: 7}
	must(t, m.Submit([]pump.Move{move}))
	must(t, m.Arrive(2, []byte("abc"), 0))
	var moved [2]pump.Moved
	if n := m.Take(moved[:]); n != 1 || moved[0] != (pump.Moved{Tag: 7}) || m.Inflight() != 0 {
		t.Errorf("%d moves have ended with %+v", n, moved[0])
	}
	must(t, m.Submit([]pump.Move{move}))
	if err := m.Arrive(2, []byte("abcd"), 0); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("content of another length: %v", err)
	}
}
