package e2e

import (
	"bufio"
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
	hugeSize = 4<<30 + 64<<20 // beyond 32 bits, with or without a sign

	// The window of a copy with the default chunk and depth: eight chunks in flight and two at the file.
	window = (8 + 2) << 20
	// What the program may need beside it, however large the file is.
	allowance = 64 << 20

	roomInMemory = 10 << 30 // of /dev/shm, and of memory that is to be had
	roomOnDisk   = 20 << 30
)

// TestHuge copies over 4 GiB to the DPU and back, and neither side's memory grows with the file.
func TestHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("over 4 GiB are copied twice; -short")
	}
	if raceDetector {
		t.Skip("memory is what this measures, and the race detector takes several times the program's own")
	}
	s := newStageIn(t, hugeFolder(t))
	if err := writeStamped(s.path("host"), hugeSize); err != nil {
		t.Fatal(err)
	}
	for _, sender := range []string{"host", "dpu"} {
		t.Run("from_"+sender, func(t *testing.T) {
			s.t = t
			if _, err := os.Stat(s.path(sender)); err != nil {
				t.Fatal("what the other direction has copied is not there: ", err)
			}
			host := s.start("host", ourHost)
			dpu := s.start("dpu", ourDPU)
			anonymous := peakAnonymous(host)
			host.ends(0)
			dpu.ends(0)
			checkMemory(t, "host's peak of RssAnon", <-anonymous)
			checkMemory(t, "DPU's peak of resident memory", peakResident(dpu))
			if err := checkStamped(s.path(otherThan(sender)), hugeSize); err != nil {
				t.Error(err)
			}
			s.clean()
			if err := os.Remove(s.path(sender)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// hugeFolder returns a folder with room for the file twice, in memory if possible.
func hugeFolder(t *testing.T) string {
	t.Helper()
	memory, disk := min(freeIn("/dev/shm"), availableMemory()), freeIn(os.TempDir())
	parent := os.TempDir()
	switch {
	case memory >= roomInMemory:
		parent = "/dev/shm"
	case disk < roomOnDisk:
		t.Skipf("no room: /dev/shm and memory have %s of %s, %s has %s of %s", humanize.IBytes(memory),
			humanize.IBytes(roomInMemory), parent, humanize.IBytes(disk), humanize.IBytes(roomOnDisk))
	}
	folder, err := os.MkdirTemp(parent, "dma-copy-huge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func freeIn(folder string) uint64 {
	var stat unix.Statfs_t
	if unix.Statfs(folder, &stat) != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize)
}

func availableMemory() uint64 {
	return kilobytes("/proc/meminfo", `MemAvailable:\s+(\d+) kB`)
}

// kilobytes reads an entry of a file of /proc; 0 if it is not there.
func kilobytes(path, pattern string) uint64 {
	text, _ := os.ReadFile(path) // a process may have ended
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		return 0
	}
	count, _ := strconv.ParseUint(string(match[1]), 10, 64) // it is all digits
	return count << 10
}

// peakAnonymous samples the memory of a process that is its own and no file's, until it ends. The kernel keeps a peak
// only of all of it, which on the host includes the mapped file.
func peakAnonymous(s side) <-chan uint64 {
	peak := make(chan uint64, 1)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	go func() {
		var most uint64
		for {
			select {
			case <-s.ended:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
				most = max(most, kilobytes(status, `RssAnon:\s+(\d+) kB`))
			}
		}
	}()
	return peak
}

func peakResident(s side) uint64 {
	return uint64(s.command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
}

func checkMemory(t *testing.T, what string, got uint64) {
	t.Helper()
	t.Logf("%s: %s", what, humanize.IBytes(got))
	if got == 0 || got > window+allowance {
		t.Errorf("%s is %s, want more than 0 and at most %s", what, humanize.IBytes(got), humanize.IBytes(window+allowance))
	}
}

const stampStep = 4096

// stamp numbers a piece of a file, so that no two are alike.
func stamp(piece []byte, offset int64) { binary.LittleEndian.PutUint64(piece, uint64(offset)+1) }

// writeStamped makes a file without holes, faster than noise is made: noise once, and a number in every page.
func writeStamped(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	_, err = io.ReadFull(noise("stamped"), block)
	for offset := int64(0); err == nil && offset < size; offset += int64(len(block)) {
		for at := 0; at < len(block); at += stampStep {
			stamp(block[at:], offset+int64(at))
		}
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Close())
}

// checkStamped compares a file with what writeStamped made.
func checkStamped(path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	if _, err := io.ReadFull(noise("stamped"), block); err != nil {
		return err
	}
	reader, page := bufio.NewReaderSize(file, 1<<20), make([]byte, stampStep)
	for offset := int64(0); offset < size; offset += stampStep {
		want := block[offset%int64(len(block)):][:stampStep]
		stamp(want, offset)
		if _, err := io.ReadFull(reader, page); err != nil {
			return fmt.Errorf("at %d: %w", offset, err)
		}
		if !bytes.Equal(page, want) {
			return fmt.Errorf("%s is wrong within the %d bytes from %d on", path, stampStep, offset)
		}
	}
	if _, err := reader.ReadByte(); err != io.EOF {
		return fmt.Errorf("%s is longer than %d bytes", path, size)
	}
	return nil
}
