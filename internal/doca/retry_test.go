package doca_test

import (
	"bytes"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// A device that returns AGAIN with nothing in flight leaves nothing to reap. Callers that took the queue for drained
// then would report success for a file that was never copied.
func TestEngineTakesSomethingWhenNothingIsInFlight(t *testing.T) {
	s := newFastStage(t, doca.Options{SoftFaults: "seed=4,again=80"})
	source, target := s.alloc(s.host, 4096), s.alloc(s.host, 4096)
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i * 7)
	}
	engine := must(s.host.NewEngine(4))(t)
	t.Cleanup(func() { s.check(engine.Close()) })
	completions := make([]doca.Completion, 1)
	for offset := int64(0); offset < 4096; offset += 64 {
		copies := []doca.Copy{{
			Source: source, Target: target, SourceOffset: offset, TargetOffset: offset, Length: 32,
			More: []doca.Range{{Offset: offset + 32, Length: 32}},
		}}
		if n, err := engine.Submit(copies); n != 1 || err != nil {
			t.Fatalf("at %d: took %d, %v", offset, n, err)
		}
		if n, err := engine.Reap(s.ctx, completions); n != 1 || err != nil || completions[0].Err != nil {
			t.Fatalf("at %d: reaped %d, %v, %v", offset, n, err, completions[0].Err)
		}
	}
	if !bytes.Equal(source.Bytes(), target.Bytes()) {
		t.Error("bytes differ")
	}
}
