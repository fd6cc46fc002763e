//go:build cgo

package doca_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// copier is an engine with memory to copy.
type copier struct {
	engine *doca.Engine
	copies []doca.Copy
}

func newCopier(t *testing.T, limits string, depth int) *copier {
	t.Helper()
	docatest.CheckHandles(t)
	driver := openSoft(t, limits)
	closeAtEnd(t, driver)
	device, err := driver.OpenDevice("03:00.0")
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, device)
	region, err := device.Alloc(8192, doca.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, region)
	engine, err := device.NewEngine(depth)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, engine)
	c := &copier{engine: engine}
	for i := range depth {
		c.copies = append(c.copies, doca.Copy{
			Source: region, Target: region, TargetOffset: 4096, Length: 64, Tag: uint64(i),
		})
	}
	return c
}

func closeAtEnd(t *testing.T, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing %T: %v", c, err)
		}
	})
}

func (c *copier) submit(t *testing.T) {
	t.Helper()
	if n, err := c.engine.Submit(c.copies); n != len(c.copies) || err != nil {
		t.Fatalf("%d copies were taken: %v", n, err)
	}
}

// Calls into C and back do not allocate, however much is copied, and of how many ranges.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	c := newCopier(t, "", 8)
	for i := range c.copies {
		c.copies[i].More = make([]doca.Range, i)
		for j := range c.copies[i].More {
			c.copies[i].More[j] = doca.Range{Offset: int64(j), Length: 1}
		}
	}
	into := make([]doca.Completion, 8)
	allocations := testing.AllocsPerRun(100, func() {
		c.submit(t)
		for c.engine.Inflight() > 0 {
			if _, err := c.engine.Reap(context.Background(), into); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations != 0 {
		t.Errorf("a batch allocates %.1f times", allocations)
	}
}

// A device that does not report the length of its lists has none, and one with very long lists does not make an engine
// need much memory.
func TestRangesFollowTheDevice(t *testing.T) {
	for list, want := range map[uint32]int{0: 1, 1: 1, 2: 2, 63: 63, 64: 64, 65: 64, math.MaxUint32: 64} {
		if got := doca.MaxRangesFor(list); got != want {
			t.Errorf("%d ranges with lists of %d buffers, want %d", got, list, want)
		}
	}
}

// neverDone makes the engine hold its copies for a minute.
const neverDone = "task_latency_us=60000000"

func TestReapEndsWithItsContext(t *testing.T) {
	because := errors.New("it was enough")
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(parent)
			timer := time.AfterFunc(5*time.Millisecond, func() { cancel(because) })
			return ctx, func() { timer.Stop() }
		},
		"late": func(parent context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(parent, 5*time.Millisecond, because)
		},
		"over": func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(parent)
			cancel(because)
			return ctx, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopier(t, neverDone, 4)
			c.submit(t)
			ctx, cancel := end(t.Context())
			defer cancel()
			if n, err := c.engine.Reap(ctx, make([]doca.Completion, 4)); n != 0 || !errors.Is(err, because) {
				t.Errorf("%d completions, %v; want %v", n, err, because)
			}
			if c.engine.Inflight() != 4 {
				t.Errorf("%d copies are in flight, not 4", c.engine.Inflight())
			}
		})
	}
}
