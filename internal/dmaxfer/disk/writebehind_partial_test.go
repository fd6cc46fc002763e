package disk_test

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
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
	if err := p.Prepare(t.Context(), disk.Metadata{Size: size}, wire.DurabilityFull, nil); err != nil {
		heard = err
	}
	mustFail(t, heard, disk.ErrTarget, "flushing")
	if kept := p.Keep(); kept != 0 {
		t.Errorf("%d bytes are kept that may not be on the disk", kept)
	}
}

// A panic of the write-behind becomes one of the call that reports it. Keep and Discard end the target as after any
// failed flush, then or when they are the first to learn of it.
func TestFlushBehindThatPanicked(t *testing.T) {
	const size = 8 << 20
	for name, reported := range map[string]bool{"reported": true, "unreported": false} {
		for end, call := range map[string]func(*disk.Partial){
			"keep":    func(p *disk.Partial) { _ = p.Keep() },
			"discard": (*disk.Partial).Discard,
		} {
			t.Run(name+" "+end, func(t *testing.T) {
				memory, flushing := disktest.NewMemory("/target"), make(chan struct{})
				faulty := disktest.NewFaulty(memory, func(_ int, op, _ string) *disktest.Fault {
					if op == "flush" {
						close(flushing)
						panic("a defect")
					}
					return nil
				})
				want := wanted(size)
				want.WriteBehind = true
				p, err := disk.OpenPartial(faulty, "/target/file", want)
				must(t, err)
				must(t, p.Advance(size))
				<-flushing
				if reported {
					mustPanic(t, func() { _ = p.Flush(t.Context(), nil) })
				}
				call(p)
				_, left := memory.Get("/target/.file.dma-copy-part")
				if open := memory.Handles(); left || open != 0 {
					t.Errorf("the partial file is left: %t; %d files and directories are open", left, open)
				}
			})
		}
	}
}

// mustPanic fails the test unless a call panics with an error of one line.
func mustPanic(t *testing.T, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if err, is := recover().(error); !is || err.Error() != "a defect" {
			t.Errorf("recovered %v", err)
		}
	}()
	call()
}
