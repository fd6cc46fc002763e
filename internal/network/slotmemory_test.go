package network

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// flagsOf returns the flags of the mapping with the memory, as proc(5) has them; nil: there is none.
func flagsOf(t *testing.T, memory []byte) []string {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	must(t, err)
	address := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	within := false
	for line := range strings.Lines(string(smaps)) {
		var start, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			within = start <= address && address < end
		}
		if flags, are := strings.CutPrefix(line, "VmFlags:"); are && within {
			return strings.Fields(flags)
		}
	}
	return nil
}

const asksForHugePages = "hg"

// Not every system has huge pages, and an emulated one may not report them.
func showsHugePages(t *testing.T, length int) bool {
	t.Helper()
	asking, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(t, err)
	defer func() { must(t, unix.Munmap(asking)) }()
	return unix.Madvise(asking, unix.MADV_HUGEPAGE) == nil && slices.Contains(flagsOf(t, asking), asksForHugePages)
}

// The memory of both ends of a window asks for huge pages, and is free when the window is closed.
func TestSlotMemory(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		both := m.meet(t)
		defer both.close(t)
		w := both.open(t, path, true, 2, 1)
		received := w.receiver.Engines[0].(*receiveEngine).received
		for side, memory := range map[string][]byte{"sender": w.slots(), "receiver": received} {
			if len(memory) != testDepth*testChunk || slices.Max(memory) != 0 {
				t.Errorf("the memory of the %s is not %d zeros", side, testDepth*testChunk)
			}
			flags := flagsOf(t, memory)
			if slices.Contains(flags, asksForHugePages) != showsHugePages(t, len(memory)) {
				t.Errorf("the memory of the %s has the flags %v", side, flags)
			}
		}
		sent := w.slots()
		copy(sent, mark)
		copy(received, mark)
		w.close(t)
		for side, memory := range map[string][]byte{"sender": sent, "receiver": received} {
			if bytes.Equal(contentAt(t, memory, len(mark)), []byte(mark)) {
				t.Errorf("the memory of the %s outlives its window", side)
			}
		}
	})
}

// Written to memory that is to be freed: whatever is mapped at its address afterwards begins otherwise.
const mark = "memory of a window"

// contentAt reads where memory is or was; nil: nothing is mapped there.
func contentAt(t *testing.T, memory []byte, length int) []byte {
	t.Helper()
	process, err := os.Open("/proc/self/mem")
	must(t, err)
	defer func() { must(t, process.Close()) }()
	content := make([]byte, length)
	if _, err := process.ReadAt(content, int64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))); err != nil {
		return nil
	}
	return content
}
