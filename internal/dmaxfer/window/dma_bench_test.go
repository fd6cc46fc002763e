//go:build cgo

package window

import (
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// BenchmarkDMATask has a device of which tasks take no time and move no bytes, so that what is left is the cost of one
// task in the layers between the pump and the device.
func BenchmarkDMATask(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			moves := make([]pump.Move, depth)
			for i := range moves {
				moves[i] = pump.Move{Window: int64(i) << 12, Buffer: int64(i) << 12, Length: 1 << 12, Tag: i}
			}
			d := newBenchedDMA(b, depth)
			into := make([]pump.Moved, depth)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				n, err := d.Submit(moves[:min(depth, b.N-done)])
				mustMove(b, err)
				for done += n; d.Inflight() > 0; {
					_, err := d.Reap(b.Context(), into)
					mustMove(b, err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func newBenchedDMA(b *testing.B, depth int) *dma {
	b.Helper()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: b.TempDir(), SoftLimits: "move_bytes=0"})
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, driver.Close()) })
	device, err := driver.OpenDevice("03:00.0")
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, device.Close()) })
	var memory [2]*doca.Region
	for i := range memory {
		memory[i], err = device.Alloc(int64(depth)<<12, doca.LocalWrite)
		mustMove(b, err)
		b.Cleanup(func() { mustMove(b, memory[i].Close()) })
	}
	engine, err := device.NewEngine(depth)
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, engine.Close()) })
	return newDMA(engine, memory[0], memory[1], false)
}

func mustMove(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
