//go:build cgo

package doca_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// A copy of halfAMinute bytes takes that long with slowReads, which no test waits for.
const (
	slowReads   = "dma_read_mb_per_s=1,max_buf_size=33554432"
	halfAMinute = 32 << 20
)

func TestTimeModelIsNamed(t *testing.T) {
	for limits, want := range map[string]string{
		"":                                    "",
		"model=bluefield3":                    "bluefield3: read 38.1 GB/s, write 31.6 GB/s, 1437 ns per task",
		"model=bluefield3,dma_latency_ns=100": "bluefield3 with other numbers: ",
		"dma_read_mb_per_s=100":               "custom: read 0.1 GB/s, write no bound, ",
	} {
		driver := openSoft(t, limits)
		if got := driver.TimeModel(); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("with %q the model is %q, not %q", limits, got, want)
		}
		if !driver.MovesBytes() {
			t.Errorf("with %q no bytes are moved", limits)
		}
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	}
}

// MovesBytes must be right, whichever it reports.
func TestNoBytesAreMoved(t *testing.T) {
	sides := docatest.OpenSides(t, "model=400g,move_bytes=0")
	if sides.Driver.MovesBytes() {
		t.Error("the driver says that it moves bytes")
	}
	region := filled(t, sides.DPU, 8192)
	engine := newEngine(t, sides.DPU)
	mustReap(t, engine, doca.Copy{Source: region, Target: region, TargetOffset: 4096, Length: 4096})
	for i, b := range region.Bytes()[4096:] {
		if b != 0 {
			t.Fatalf("byte %d of the target is %d", i, b)
		}
	}
}

// All engines of a device share its bandwidth; another device has its own.
func TestEnginesShareTheModelledBandwidth(t *testing.T) {
	sides := docatest.OpenSides(t, slowReads)
	other, err := sides.Driver.OpenDevice("03:00.1")
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, other)
	long, short := filled(t, sides.DPU, 2*halfAMinute), filled(t, sides.DPU, 8192)
	elsewhere := filled(t, other, 8192)
	busy, waiting, free := newEngine(t, sides.DPU), newEngine(t, sides.DPU), newEngine(t, other)
	mustSubmit(t, busy, doca.Copy{Source: long, Target: long, TargetOffset: halfAMinute, Length: halfAMinute})
	mustSubmit(t, waiting, doca.Copy{Source: short, Target: short, TargetOffset: 4096, Length: 1})
	mustReap(t, free, doca.Copy{Source: elsewhere, Target: elsewhere, TargetOffset: 4096, Length: 1})
	for range 1000 {
		if n := waiting.Poll(make([]doca.Completion, 1)); n > 0 {
			t.Fatal("a copy did not wait for the one before it on the same device")
		}
	}
	for _, engine := range []*doca.Engine{busy, waiting} { // which flushes what they have
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
	mustReap(t, newEngine(t, sides.DPU), doca.Copy{Source: short, Target: short, TargetOffset: 4096, Length: 1})
}

func filled(t *testing.T, device *doca.Device, size int64) *doca.Region {
	t.Helper()
	region, err := device.Alloc(size, doca.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, region)
	for i := range region.Bytes()[:size/2] {
		region.Bytes()[i] = byte(i%255) + 1
	}
	return region
}

func newEngine(t *testing.T, device *doca.Device) *doca.Engine {
	t.Helper()
	engine, err := device.NewEngine(4)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, engine)
	return engine
}

func mustSubmit(t *testing.T, engine *doca.Engine, c doca.Copy) {
	t.Helper()
	if n, err := engine.Submit([]doca.Copy{c}); n != 1 || err != nil {
		t.Fatalf("%d copies were taken: %v", n, err)
	}
}

func mustReap(t *testing.T, engine *doca.Engine, c doca.Copy) {
	t.Helper()
	mustSubmit(t, engine, c)
	into := make([]doca.Completion, 1)
	if n, err := engine.Reap(context.Background(), into); n != 1 || err != nil || into[0].Err != nil {
		t.Fatalf("%d copies completed: %v, %v", n, err, into[0].Err)
	}
}
