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
	"syscall"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

const (
	hugeSize = 4<<30 + 64<<20 // more than 32 bits can count, with or without a sign

	// hugeWindow is the window of a transfer with the default chunk and depth: eight chunks in flight and two that are
	// written to the file.
	hugeWindow = (8 + 2) << 20
	// memoryAllowance is what the program may need besides, however large the file is.
	memoryAllowance = 64 << 20

	hugeMemory = 10 << 30 // needed in /dev/shm, and of available memory
	hugeDisk   = 20 << 30 // needed on disk otherwise
)

// TestHuge copies over 4 GiB to the DPU and back. The memory of neither side grows with the file.
func TestHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("copies over 4 GiB twice; -short")
	}
	if raceDetector {
		t.Skip("measures memory, of which the race detector takes several times the program's own")
	}
	f := newFixtureIn(t, hugeDir(t))
	must(t, writeStampedFile(f.path("host"), hugeSize))
	for _, sender := range bothSides {
		t.Run("from_"+sender, func(t *testing.T) {
			f.t = t
			f.testHuge(sender)
		})
	}
}

// testHuge moves the file to the other side.
func (f *fixture) testHuge(sender string) {
	if _, err := os.Stat(f.path(sender)); err != nil {
		f.t.Fatal("the file was not copied in the other direction: ", err)
	}
	host := f.start("host", hostCommand)
	dpu := f.start("dpu", dpuCommand)
	anonymous := peakAnonymous(host)
	host.expectExit(exitOK)
	dpu.expectExit(exitOK)
	checkMemory(f.t, "host's peak of RssAnon", <-anonymous)
	checkMemory(f.t, "DPU's peak of resident memory", peakResident(dpu))
	if err := checkStampedFile(f.path(peerOf(sender)), hugeSize); err != nil {
		f.t.Error(err)
	}
	f.expectClean()
	must(f.t, os.Remove(f.path(sender)))
}

// hugeDir returns a directory with room for two copies of the file, in memory if possible.
func hugeDir(t *testing.T) string {
	t.Helper()
	memory, disk := min(freeIn("/dev/shm"), availableMemory()), freeIn(os.TempDir())
	parent := os.TempDir()
	switch {
	case memory >= hugeMemory:
		parent = "/dev/shm"
	case disk < hugeDisk:
		t.Skipf("no room: /dev/shm and memory have %s of %s, %s has %s of %s", humanize.IBytes(memory),
			humanize.IBytes(hugeMemory), parent, humanize.IBytes(disk), humanize.IBytes(hugeDisk))
	}
	folder, err := os.MkdirTemp(parent, "dma-copy-huge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
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

// peakAnonymous samples the anonymous memory of a process until it ends. The kernel keeps a peak only of all its
// memory, which on the host includes the mapped file.
func peakAnonymous(s side) <-chan uint64 {
	peak := make(chan uint64, 1)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	go func() {
		var most uint64
		for {
			select {
			case <-s.done:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
				most = max(most, kibibytes(status, `RssAnon:\s+(\d+) kB`))
			}
		}
	}()
	return peak
}

func peakResident(s side) uint64 {
	return uint64(s.command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
}

// checkMemory expects a peak to be measured, and not to exceed what a transfer may use.
func checkMemory(t *testing.T, what string, got uint64) {
	t.Helper()
	t.Logf("%s: %s", what, humanize.IBytes(got))
	if most := uint64(hugeWindow + memoryAllowance); got == 0 || got > most {
		t.Errorf("%s is %s, want more than 0 and at most %s", what, humanize.IBytes(got), humanize.IBytes(most))
	}
}

const (
	stampStep  = 4096 // distance of two stamps
	stampBlock = 1 << 20
)

// stamp writes a number that follows from the offset into the data there, so that no two pages of a file are alike.
func stamp(data []byte, offset int64) { binary.LittleEndian.PutUint64(data, uint64(offset)+1) }

// stampedBlock returns random bytes; stampBlockAt makes them the block at an offset.
func stampedBlock() ([]byte, error) {
	block := make([]byte, stampBlock)
	_, err := io.ReadFull(randomStream("stamped"), block)
	return block, err
}

func stampBlockAt(block []byte, offset int64) {
	for at := 0; at < len(block); at += stampStep {
		stamp(block[at:], offset+int64(at))
	}
}

// writeStampedFile makes a file without holes faster than random bytes are made: it repeats a block of them and stamps
// every page.
func writeStampedFile(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block, err := stampedBlock()
	for offset := int64(0); err == nil && offset < size; offset += stampBlock {
		stampBlockAt(block, offset)
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Close())
}

// checkStampedFile compares a file with what writeStampedFile makes.
func checkStampedFile(path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	want, err := stampedBlock()
	if err != nil {
		return err
	}
	got := make([]byte, stampBlock)
	for offset := int64(0); offset < size; offset += stampBlock {
		stampBlockAt(want, offset)
		if _, err := io.ReadFull(file, got); err != nil {
			return fmt.Errorf("at offset %d: %w", offset, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s is wrong within the %d bytes at offset %d", path, stampBlock, offset)
		}
	}
	if n, err := file.Read(got[:1]); n != 0 || err != io.EOF {
		return fmt.Errorf("%s is longer than %d bytes", path, size)
	}
	return nil
}
