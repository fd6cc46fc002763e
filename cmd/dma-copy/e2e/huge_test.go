package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

const (
	largeSize = 768 << 20      // dozens of windows
	hugeSize  = 4<<30 + 64<<20 // more than 32 bits can count, with or without a sign

	// hugeWindow is the window of a transfer with the default chunk and depth: eight chunks in flight and two that are
	// written to the file.
	hugeWindow = (8 + 2) << 20
	// memoryAllowance is the memory that the program may need besides, independent of the size of the file.
	memoryAllowance = 64 << 20
)

// TestHuge copies a large file to the DPU or to the host. The memory of neither side grows with the file.
//
// The source consists mostly of holes, because most of the time would be spent on getting memory for it. With --sparse
// never they are read, moved and written like data, as those of a file without holes are by default.
func TestHuge(t *testing.T) {
	if raceDetector {
		t.Skip("measures memory, of which the race detector takes several times the program's own")
	}
	t.Parallel()
	size := int64(largeSize)
	if *inFull {
		size = hugeSize
	}
	for _, sender := range byChance(bothSides) { // one after the other, for want of memory
		t.Run("from_"+sender, func(t *testing.T) { testHuge(newFixtureIn(t, hugeDir(t, size)), sender, size) })
	}
}

func testHuge(f *fixture, sender string, size int64) {
	must(f.t, writeStampedFile(f.path(sender), size))
	host := f.start("host", hostCommand+"--sparse never")
	dpu := f.start("dpu", dpuCommand+"--sparse never")
	anonymous, resident := peak(host, "RssAnon"), peak(dpu, "VmHWM")
	host.expectExit(exitOK)
	dpu.expectExit(exitOK)
	checkMemory(f.t, "host's peak of RssAnon", <-anonymous)
	checkMemory(f.t, "DPU's peak of resident memory", <-resident)
	if err := checkStampedFile(f.path(peerOf(sender)), size); err != nil {
		f.t.Error(err)
	}
	f.expectClean()
}

// hugeDir returns a directory with space for both files, in memory if possible: there the source takes little.
func hugeDir(t *testing.T, size int64) string {
	t.Helper()
	hugeMemory, hugeDisk := uint64(size)*3/2, uint64(size)*5/2
	memory, disk := min(freeIn("/dev/shm"), availableMemory()), freeIn(os.TempDir())
	parent := os.TempDir()
	switch {
	case memory >= hugeMemory:
		parent = "/dev/shm"
	case disk < hugeDisk:
		t.Skipf("not enough space: %s of %s in memory and /dev/shm, %s of %s in %s", quantity.Bytes(memory),
			quantity.Bytes(hugeMemory), quantity.Bytes(disk), quantity.Bytes(hugeDisk), parent)
	}
	dir, err := os.MkdirTemp(parent, "dma-copy-huge")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func freeIn(dir string) uint64 {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize)
}

func availableMemory() uint64 {
	return kibibytes("/proc/meminfo", `MemAvailable:\s+(\d+) kB`)
}

// kibibytes returns an entry of a file of /proc in bytes, 0 if there is none.
func kibibytes(path, pattern string) uint64 {
	text, _ := os.ReadFile(path) // a process may have ended
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		return 0
	}
	count, _ := strconv.ParseUint(string(match[1]), 10, 64) // it is all digits
	return count << 10
}

// peak samples a figure of /proc/PID/status in bytes until a process ends, and delivers the largest. The kernel keeps a
// peak only of all memory of a process, VmHWM, which on the host includes the mapped file. The usage that a parent is
// told at the end includes the parent's own memory before the program was executed.
func peak(s side, figure string) <-chan uint64 {
	largest := make(chan uint64, 1)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	go func() {
		var most uint64
		for {
			select {
			case <-s.done:
				largest <- most
				return
			case <-time.After(10 * time.Millisecond):
				most = max(most, kibibytes(status, figure+`:\s+(\d+) kB`))
			}
		}
	}()
	return largest
}

// checkMemory expects a peak to be measured, and not to exceed what a transfer may use.
func checkMemory(t *testing.T, what string, got uint64) {
	t.Helper()
	t.Logf("%s: %s", what, quantity.Bytes(got))
	if most := uint64(hugeWindow + memoryAllowance); got == 0 || got > most {
		t.Errorf("%s is %s, want more than 0 and at most %s", what, quantity.Bytes(got), quantity.Bytes(most))
	}
}

// stampStep is the distance between two stamps of a file, at most half of a chunk.
const stampStep = 256 << 10

// stamp writes a number that follows from the offset into the data there, so that no two chunks of a file are alike.
func stamp(data []byte, offset int64) { binary.LittleEndian.PutUint64(data, uint64(offset)+1) }

// stampedPage returns a page of random bytes to be stamped.
func stampedPage() ([]byte, error) {
	page := make([]byte, os.Getpagesize())
	_, err := io.ReadFull(randomStream("stamped"), page)
	return page, err
}

// writeStampedFile makes a file of holes with a stamped page at each step.
func writeStampedFile(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	page, err := stampedPage()
	for offset := int64(0); err == nil && offset < size; offset += stampStep {
		stamp(page, offset)
		_, err = file.WriteAt(page, offset)
	}
	return errors.Join(err, file.Truncate(size), file.Close())
}

// checkStampedFile compares a file with what writeStampedFile makes, and expects it to have no holes.
func checkStampedFile(path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}
	if stat.Size != size || stat.Blocks*512 < size {
		return fmt.Errorf("%s has %d bytes, %d of them allocated, want %d", path, stat.Size, stat.Blocks*512, size)
	}
	page, err := stampedPage()
	if err != nil {
		return err
	}
	got, want := make([]byte, stampStep), make([]byte, stampStep)
	for offset := int64(0); offset < size; offset += stampStep {
		stamp(page, offset)
		copy(want, page)
		if _, err := io.ReadFull(file, got); err != nil {
			return fmt.Errorf("at offset %d: %w", offset, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s is wrong within the %d bytes at offset %d", path, stampStep, offset)
		}
	}
	return nil
}
