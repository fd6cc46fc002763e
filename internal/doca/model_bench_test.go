//go:build cgo

package doca_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// modelled has the numbers of model=400g (softdoca/docs/SOFTDEVICE.md), in nanoseconds and bytes per nanosecond.
var modelled = struct{ latency, taskRate, rate float64 }{1437, 10.787, 50}

const modelledLimits = "model=400g,dma_latency_ns=1437,dma_task_mb_per_s=10787,dma_read_mb_per_s=50000," +
	"dma_write_mb_per_s=50000,move_bytes=0"

var (
	benchmarkedChunks = []int64{64 << 10, 256 << 10, 1 << 20, 2 << 20}
	benchmarkedDepths = []int{1, 4, 16, 32, 128}
)

// BenchmarkModelledEngine keeps depth copies in flight over an engine of 50 GB/s that moves no bytes. model-GB/s is the
// maximum of that engine at this depth, model-% how much of it was reached, and cpu-% the share of one CPU that it
// took.
func BenchmarkModelledEngine(b *testing.B) {
	for _, writes := range []bool{false, true} {
		for _, chunk := range benchmarkedChunks {
			for _, depth := range benchmarkedDepths {
				name := fmt.Sprintf("%s/chunk=%dKiB/depth=%d", directionName(writes), chunk>>10, depth)
				b.Run(name, func(b *testing.B) {
					l := newLoad(b, modelledLimits, chunk, depth, writes)
					if model := l.driver.TimeModel(); !strings.HasPrefix(model, "400g: ") {
						b.Fatalf("the numbers here are not those of the model: %s", model)
					}
					spent := l.run(b)
					reached := float64(chunk) * float64(b.N) / float64(spent.elapsed)
					taskTime := modelled.latency + float64(chunk)/modelled.taskRate
					possible := min(modelled.rate, float64(depth)*float64(chunk)/taskTime)
					b.ReportMetric(reached, "GB/s")
					b.ReportMetric(possible, "model-GB/s")
					b.ReportMetric(100*reached/possible, "model-%")
					b.ReportMetric(100*float64(spent.cpu)/float64(spent.elapsed), "cpu-%")
				})
			}
		}
	}
}

// BenchmarkEngineTask uses a device whose tasks take no time, so that it measures the cost of our own layers.
func BenchmarkEngineTask(b *testing.B) {
	for _, depth := range benchmarkedDepths {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			l := newLoad(b, "move_bytes=0", 64<<10, depth, false)
			b.ReportAllocs()
			spent := l.run(b)
			b.ReportMetric(float64(b.N)/spent.elapsed.Seconds(), "tasks/s")
		})
	}
}

func directionName(writes bool) string {
	if writes {
		return "write"
	}
	return "read"
}

// load is an engine of the DPU with depth copies between its memory and the host's.
type load struct {
	driver *doca.Driver
	engine *doca.Engine
	copies []doca.Copy // the next that are submitted; their tags are those of all
	all    []doca.Copy
	into   []doca.Completion
}

func newLoad(b *testing.B, limits string, chunk int64, depth int, writes bool) *load {
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: b.TempDir(), SoftLimits: limits})
	l := &load{driver: driver, into: make([]doca.Completion, depth)}
	mustOpen(b, driver, err)
	host, err := driver.OpenDevice("b1:00.0")
	mustOpen(b, host, err)
	dpu, err := driver.OpenDevice("03:00.0")
	mustOpen(b, dpu, err)
	theirs, err := host.Alloc(chunk*int64(depth), doca.RemoteWrite)
	mustOpen(b, theirs, err)
	descriptor, err := theirs.Export()
	if err != nil {
		b.Fatal(err)
	}
	window, err := dpu.Import(descriptor, theirs.Address(), theirs.Len())
	mustOpen(b, window, err)
	ours, err := dpu.Alloc(chunk*int64(depth), doca.LocalWrite)
	mustOpen(b, ours, err)
	l.engine, err = dpu.NewEngine(depth)
	mustOpen(b, l.engine, err)
	for i := range int64(depth) {
		offset := i * chunk
		c := doca.Copy{
			Source: window, Target: ours, SourceOffset: offset, TargetOffset: offset, Length: chunk, Tag: uint64(i),
		}
		if writes {
			c.Source, c.Target = c.Target, c.Source
		}
		l.all = append(l.all, c)
	}
	l.copies = make([]doca.Copy, 0, depth)
	return l
}

func mustOpen(b *testing.B, c interface{ Close() error }, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Errorf("closing %T: %v", c, err)
		}
	})
}

type spent struct{ elapsed, cpu time.Duration }

// run makes b.N copies, each submitted as soon as a slot is free.
func (l *load) run(b *testing.B) spent {
	l.copies = append(l.copies[:0], l.all...)
	submitted, done := 0, 0
	before := processorTime(b)
	b.ResetTimer()
	start := time.Now()
	for done < b.N {
		l.copies = l.copies[:min(len(l.copies), b.N-submitted)]
		n, err := l.engine.Submit(l.copies)
		if err != nil && !errors.Is(err, doca.ErrQueueFull) {
			b.Fatal(err)
		}
		submitted += n
		l.copies = l.copies[:copy(l.copies, l.copies[n:])]
		n, err = l.engine.Reap(context.Background(), l.into)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range l.into[:n] {
			l.copies = append(l.copies, l.all[c.Tag])
		}
		done += n
	}
	elapsed := time.Since(start)
	b.StopTimer()
	return spent{elapsed: elapsed, cpu: processorTime(b) - before}
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
