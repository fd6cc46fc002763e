//go:build cgo

package native

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// countingMemory is the Memory of a device that counts the tasks of its engines, and the ranges that they copy.
type countingMemory struct {
	window.Memory
	tasks, ranges atomic.Int64
}

// Open implements Memory.
func (c *countingMemory) Open(ctx context.Context, l window.Layout, of protocol.Window) (*window.Window, error) {
	w, err := c.Memory.Open(ctx, l, of)
	if err != nil {
		return nil, err
	}
	for i, e := range w.Engines {
		w.Engines[i] = &countingEngine{e.(pump.Gatherer), c}
	}
	return w, nil
}

type countingEngine struct {
	pump.Gatherer
	counts *countingMemory
}

// Submit implements pump.Engine.
func (e *countingEngine) Submit(moves []pump.Move) (int, error) {
	n, err := e.Gatherer.Submit(moves)
	for _, m := range moves[:n] {
		e.counts.tasks.Add(1)
		e.counts.ranges.Add(int64(1 + len(m.More)))
	}
	return n, err
}

// sparseRuns is the number of runs of data of one page in the file of gatheredMeeting, between holes of one page.
const sparseRuns = 300

// gatheredMeeting prepares the transfer of a sparse file to a DPU over the software device, whose engines are slower
// than the sender, so that units wait for them. The device takes lists of so many buffers.
func gatheredMeeting(t *testing.T, list int, faults string, a digest.Algorithm) (*meeting, *countingMemory) {
	const page = 4096
	driver, err := doca.Open(doca.Options{
		Choice: doca.ChooseSoft, SoftDir: t.TempDir(), SoftFaults: faults,
		SoftLimits: fmt.Sprintf("task_latency_us=2000,max_buf_list_len=%d", list),
	})
	must(t, err)
	host, err := driver.OpenDevice("b1:00.0")
	must(t, err)
	dpu, err := driver.OpenDevice("03:00.0")
	must(t, err)
	t.Cleanup(func() {
		must(t, host.Close())
		must(t, dpu.Close())
		must(t, driver.Close())
	})
	from := disktest.NewMemory("/")
	run := make([]byte, page)
	random := rand.NewChaCha8([32]byte{3})
	from.Put("/src", "")
	for i := range int64(sparseRuns) {
		_, _ = random.Read(run)
		from.Write("/src", string(run), 2*i*page)
	}
	m := newMeeting(t, from, newTarget())
	for _, p := range []*party{m.sender, m.receiver} {
		p.config.Chunk, p.config.Depth, p.config.Digest = 64<<10, 32, a
	}
	counts := &countingMemory{Memory: window.NewMemory(dpu, wire.DPU, nil)}
	m.memory = func(side wire.Side) window.Memory {
		if side == wire.Host {
			return window.NewMemory(host, wire.Host, nil)
		}
		return counts
	}
	return m, counts
}

// mustArrive transfers in real time, because the device is not in virtual time.
func (m *meeting) mustArrive() {
	m.t.Helper()
	m.meet(m.t)
	must(m.t, m.sender.err)
	must(m.t, m.receiver.err)
	m.mustAgree()
	want, _ := m.from.Get("/src")
	if got, _ := m.to.Get("/dst/t"); !bytes.Equal([]byte(got), []byte(want)) {
		m.t.Errorf("%d bytes arrived changed", len(want))
	}
}

// The runs of data of a sparse file share tasks, also if they have to be stored in order.
func TestDPUGathersRunsOfASparseFile(t *testing.T) {
	for _, algorithm := range []digest.Algorithm{digest.XXH3, digest.BLAKE3} {
		t.Run(algorithm.String(), func(t *testing.T) {
			m, counts := gatheredMeeting(t, 64, "", algorithm)
			m.mustArrive()
			t.Logf("%d tasks for %d runs of data", counts.tasks.Load(), sparseRuns)
			if counts.ranges.Load() != sparseRuns || counts.tasks.Load() >= sparseRuns*3/4 {
				t.Errorf("%d tasks for %d ranges, of %d runs of data",
					counts.tasks.Load(), counts.ranges.Load(), sparseRuns)
			}
		})
	}
}

// A device whose lists have one buffer copies each run by itself.
func TestDPUWithoutListsReceivesASparseFile(t *testing.T) {
	m, counts := gatheredMeeting(t, 1, "", digest.XXH3)
	m.mustArrive()
	if counts.tasks.Load() != sparseRuns || counts.ranges.Load() != sparseRuns {
		t.Errorf("%d tasks for %d ranges, want %d", counts.tasks.Load(), counts.ranges.Load(), sparseRuns)
	}
}

// A run that the device corrupts is retransmitted, and only this one.
func TestCorruptedRunOfATaskIsRetransmitted(t *testing.T) {
	for _, fault := range []string{"flip", "drop", "duplicate"} {
		t.Run(fault, func(t *testing.T) {
			m, counts := gatheredMeeting(t, 64, "seed=1,"+fault+"=150", digest.XXH3)
			m.mustArrive()
			if got := m.receiver.summary.Retries; got != 1 || counts.ranges.Load() != sparseRuns+1 {
				t.Errorf("%d chunks were retransmitted, %d copied", got, counts.ranges.Load())
			}
		})
	}
}

// A task that the device fails ends the transfer on both sides.
func TestFailedTaskOfSeveralRunsEndsTheTransfer(t *testing.T) {
	m, _ := gatheredMeeting(t, 64, "fail=5:IO_FAILED", digest.XXH3)
	m.meet(t)
	mustBe(t, m.receiver.err, doca.CodeIOFailed)
	if m.sender.err == nil {
		t.Error("the sender did not fail")
	}
	if got := m.receiver.summary.Retries; got != 0 {
		t.Errorf("%d chunks were retransmitted", got)
	}
}
