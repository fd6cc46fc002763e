package disk_test

import (
	"bytes"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// A large chunk is written completely, with several calls.
func TestLargeChunksAreWrittenInSteps(t *testing.T) {
	_, m := inMemory()
	chunk := bytes.Repeat([]byte("0123456789abcde"), 600<<10/15)
	faulty := disktest.NewFaulty(m, disktest.FailAt(-1, disktest.Fault{}))
	p, err := disk.OpenPartial(faulty, "/there/file", wanted(7+len(chunk)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Discard()
	before := writes(faulty)
	if err := p.WriteAt(chunk, 7); err != nil {
		t.Fatal(err)
	}
	if got := writes(faulty) - before; got != 3 {
		t.Errorf("%d bytes were written with %d calls", len(chunk), got)
	}
	back := make([]byte, len(chunk))
	if err := p.ReadAt(back, 7); err != nil || !bytes.Equal(back, chunk) {
		t.Errorf("they read back otherwise: %v", err)
	}
}

func writes(f *disktest.Faulty) (count int) {
	for _, op := range f.Trace() {
		if op == "write .file.dma-copy-part" {
			count++
		}
	}
	return count
}
