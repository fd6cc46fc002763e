package pump

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// mallocs returns the number of allocations of a transfer of so many chunks.
func mallocs(t *testing.T, chunks int, algorithm digest.Algorithm) uint64 {
	p := newPair(64 * chunks)
	p.algorithm, p.slots = algorithm, 8
	if algorithm.Ordered() {
		p.lanes, p.inOrder = [2]int{1, 1}, true
	}
	p.build()
	return p.mallocs(t)
}

// mallocs returns the number of allocations of a transfer after its set-up.
func (p *pair) mallocs(t *testing.T) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sent, received := p.run(t.Context())
	runtime.ReadMemStats(&after)
	must(t, sent)
	must(t, received)
	return after.Mallocs - before.Mallocs
}

func TestChunksAllocateNothing(t *testing.T) {
	for _, algorithm := range algorithms {
		const few, many = 1000, 11000
		mallocs(t, few, algorithm) // the runtime allocates at the first use
		extra := int64(mallocs(t, many, algorithm)) - int64(mallocs(t, few, algorithm))
		if extra > (many-few)/20 {
			t.Errorf("%s: %d more chunks allocate %d times", algorithm, many-few, extra)
		}
	}
}

// packMallocs returns the number of allocations of a transfer of so many packs of 4 files.
func packMallocs(t *testing.T, packs int) uint64 {
	p := newPackedPair(make([]int, 4*packs)...)
	for _, f := range p.files {
		f.source.bytes, f.target.bytes = make([]byte, 16), make([]byte, 16)
	}
	p.slots, p.lanes = 8, [2]int{2, 2}
	p.build()
	p.receiver.config.StorePack = func(context.Context, *Unit, []byte) (func(), error) { return nil, nil }
	return p.mallocs(t)
}

func TestPacksAllocateNothing(t *testing.T) {
	const few, many = 500, 5500
	packMallocs(t, few)
	extra := int64(packMallocs(t, many)) - int64(packMallocs(t, few))
	if extra > (many-few)/20 {
		t.Errorf("%d more packs allocate %d times", many-few, extra)
	}
}

// gatherMallocs returns the number of allocations of a transfer of so many runs of data, which share moves.
func gatherMallocs(t *testing.T, runs int) uint64 {
	p := newSparsePair(runs, 10, 32)
	p.build()
	engine := &gatheringCopier{Copier: p.copier(), ranges: p.ranges, wrong: -1}
	p.receiver.lanes[0].copies.engine = engine
	mallocs := p.mallocs(t)
	if len(engine.units) >= runs {
		t.Errorf("%d moves for %d runs", len(engine.units), runs)
	}
	return mallocs
}

func TestGatheredUnitsAllocateNothing(t *testing.T) {
	const few, many = 1000, 11000
	gatherMallocs(t, few)
	extra := int64(gatherMallocs(t, many)) - int64(gatherMallocs(t, few))
	if extra > (many-few)/20 {
		t.Errorf("%d more runs allocate %d times", many-few, extra)
	}
}

// slowEngine delays each Submit.
type slowEngine struct {
	*Copier
	takes time.Duration
}

func (e slowEngine) Submit(moves []Move) (int, error) {
	time.Sleep(e.takes)
	return e.Copier.Submit(moves)
}

// In virtual time only the pauses of this test take time, and each belongs to a stage.
func TestStagesAccountForTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(64 * 50)
		p.hostSends, p.lanes = true, [2]int{1, 1}
		p.build()
		p.source.pause = func() { time.Sleep(3 * time.Millisecond) }
		p.target.pause = func() { time.Sleep(7 * time.Millisecond) }
		p.receiver.lanes[0].copies.engine = slowEngine{p.copier(), 2 * time.Millisecond}
		began := time.Now()
		sent, received := p.run(t.Context())
		took := time.Since(began)
		must(t, sent)
		must(t, received)
		for i, side := range []string{"sender", "receiver"} {
			var total time.Duration
			for stage := range stageCount {
				total += time.Duration(p.stages[i].spent[stage].Load())
			}
			// The side that ends first waits for the other outside of its lanes.
			if total > took || total < took-20*time.Millisecond {
				t.Errorf("the %s accounts for %s of %s", side, total, took)
			}
		}
		mustBeBusiest(t, &p.stages[0], Peer)
		mustBeBusiest(t, &p.stages[1], Writing)
		if got := time.Duration(p.stages[0].spent[Reading].Load()); got != 50*3*time.Millisecond {
			t.Errorf("reading took %s", got)
		}
	})
}

func mustBeBusiest(t *testing.T, s *Stages, want Stage) {
	t.Helper()
	shares := s.Shares()
	total := 0.0
	for _, share := range shares {
		total += share
	}
	if total < 0.999 || total > 1.001 || shares.Busiest() != want {
		t.Errorf("%v add up to %f, and %s takes most", shares, total, shares.Busiest())
	}
}

func TestNothingDoneTakesNoShare(t *testing.T) {
	if shares := new(Stages).Shares(); shares != (Shares{}) {
		t.Errorf("%v", shares)
	}
}
