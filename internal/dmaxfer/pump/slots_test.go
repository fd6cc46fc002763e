package pump

import (
	"io"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// mapPages returns so many pages of memory that nothing has accessed. It skips the test where the system cannot map
// them in advance.
func mapPages(t *testing.T, count int) []byte {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, count*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(t, err)
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	must(t, unix.Madvise(memory, unix.MADV_NOHUGEPAGE))
	if unix.Madvise(memory[:os.Getpagesize()], unix.MADV_POPULATE_READ) == unix.EINVAL {
		t.Skip("this kernel cannot map pages in advance")
	}
	must(t, unix.Madvise(memory, unix.MADV_DONTNEED))
	return memory
}

// mappedPages returns how many pages of memory have been accessed or mapped in advance.
func mappedPages(t *testing.T, memory []byte) (count int) {
	t.Helper()
	resident := make([]byte, len(memory)/os.Getpagesize())
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(memory))),
		uintptr(len(memory)), uintptr(unsafe.Pointer(unsafe.SliceData(resident))))
	if failed != 0 {
		t.Fatal(failed)
	}
	for _, r := range resident {
		count += int(r & 1)
	}
	return count
}

// As much of a slot as the file needs is mapped before the slot is read into, and nothing of others.
func TestSlotIsMappedBeforeTheRead(t *testing.T) {
	const slots, pages = 2, 32
	slot := int64(pages * os.Getpagesize())
	for size, want := range map[int64]int{0: 0, fewestPopulated - 1: 0, slot - 1: pages, 10 * slot: pages} {
		memory := mapPages(t, slots*pages)
		feed := &mappedAtNext{t: t, memory: memory}
		s := NewSender(SenderConfig{
			Feed: feed, Slots: NewSlots(memory, slot), Size: size, Lanes: 1, Digest: digest.None, Stages: &Stages{},
			Outbox: NewBatch[Announcement](slots, 1),
		})
		must(t, s.Run(t.Context()))
		if feed.mapped != want {
			t.Errorf("a file of %d bytes: %d pages are mapped, want %d", size, feed.mapped, want)
		}
	}
}

// mappedAtNext is a Feed without content that looks which pages of its slots are mapped.
type mappedAtNext struct {
	Feed
	t      *testing.T
	memory []byte
	mapped int
}

func (m *mappedAtNext) Next([]byte, *Unit) error {
	m.mapped = mappedPages(m.t, m.memory)
	return io.EOF
}

// The part of a buffer that a chunk needs is mapped before the engine copies into it.
func TestBufferIsMappedBeforeTheCopy(t *testing.T) {
	const pages = 32
	slot := int64(pages * os.Getpagesize())
	for length, want := range map[int64]int{slot: pages, slot / 2: pages / 2, fewestPopulated - 1: 0} {
		memory := mapPages(t, pages)
		engine := &mappedAtSubmit{t: t, memory: memory, Copier: NewCopier(make([]byte, slot), memory, 1, digest.None)}
		r := NewReceiver(ReceiverConfig{
			Depth: 1, Buffers: []Slots{NewSlots(memory, slot)}, Engines: []Engine{engine}, Digest: digest.None,
			Stages: &Stages{}, Retransmit: func(*Unit) {}, Outbox: NewBatch[Reply](1, 1),
		})
		in := NewIncoming(newMemory(make([]byte, slot)), digest.None, 1)
		in.Moved = func(Chunk, int64) error { return nil }
		r.Take(negotiate.Record{Kind: negotiate.DataRecord, Length: uint64(length)}, in)
		r.End()
		must(t, r.Run(t.Context()))
		if engine.mapped != want {
			t.Errorf("a chunk of %d bytes: %d pages are mapped, want %d", length, engine.mapped, want)
		}
	}
}

// mappedAtSubmit is a Copier that looks which pages of its buffers are mapped when it is to copy into them.
type mappedAtSubmit struct {
	*Copier
	t      *testing.T
	memory []byte
	mapped int
}

func (m *mappedAtSubmit) Submit(moves []Move) (int, error) {
	m.mapped = mappedPages(m.t, m.memory)
	return m.Copier.Submit(moves)
}
