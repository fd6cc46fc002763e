package disk_test

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Content that the write-behind failed to flush is never trusted, whichever call reports the failure first.
func TestFlushBehindThatFailed(t *testing.T) {
	const size = 40 << 20
	var flushed atomic.Bool
	faulty := disktest.NewFaulty(disktest.NewMemory("/target"), func(_ int, op, _ string) *disktest.Fault {
		if op != "flush" || flushed.Swap(true) {
			return nil // only the first flush fails: the kernel reports an error once
		}
		return &disktest.Fault{Err: unix.EIO}
	})
	want := wanted(size)
	want.WriteBehind = true
	p, err := disk.OpenPartial(faulty, "/target/file", want)
	must(t, err)
	heard := p.Advance(size)
	if err := p.Prepare(t.Context(), disk.Metadata{Size: size}, negotiate.DurabilityFull, nil); err != nil {
		heard = err
	}
	mustFail(t, heard, disk.ErrTarget, "flushing")
	if kept := p.Keep(); kept != 0 {
		t.Errorf("%d bytes are kept that may not be on the disk", kept)
	}
}
