package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

const (
	sparseSize = 1 << 40
	islandSize = 12<<20 + 123 // together more than the window

	// sparseWindow is what a copy has by default: so many slots of so much.
	sparseWindow = 16 * 1 << 20
)

// islands is where a sparse file has data: at both ends, across 4 GiB, and alone in the middle.
var islands = []int64{0, 1<<32 - 1<<20, 17<<30 + 12345, 777 << 30, sparseSize - islandSize}

// TestSparse copies a file of 1 TiB that is nearly all hole, in both directions: the copy takes no more of the disk than the file, and
// neither side takes more memory than its window and a little.
func TestSparse(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"host", "dpu"} {
		t.Run("from_"+sender, func(t *testing.T) {
			s := newStage(t)
			must(t, writeIslands(s.path(sender)))
			host, dpu := s.start("host", ourHost), s.start("dpu", ourDPU)
			peaks := map[string]<-chan uint64{"host": peakOf(host), "DPU": peakOf(dpu)}
			host.ends(0)
			dpu.ends(0)
			for name, peak := range peaks {
				s.checkPeak(name, <-peak)
			}
			s.checkIslands(otherThan(sender))
			s.clean()
		})
	}
}

func (s *stage) checkPeak(name string, peak uint64) {
	s.t.Helper()
	s.t.Logf("%s's peak of resident memory: %s", name, humanize.IBytes(peak))
	if !raceDetector && (peak == 0 || peak > sparseWindow+allowance) {
		s.t.Errorf("%s's peak of resident memory is %s, want more than 0 and at most %s",
			name, humanize.IBytes(peak), humanize.IBytes(sparseWindow+allowance))
	}
}

// peakOf reads the peak of a process's memory until it ends: what the kernel tells the parent afterwards includes the parent's own.
func peakOf(s side) <-chan uint64 {
	peak := make(chan uint64, 1)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	go func() {
		var most uint64
		for {
			most = max(most, kilobytes(status, `VmHWM:\s+(\d+) kB`))
			select {
			case <-s.ended:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return peak
}

func writeIslands(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	island := make([]byte, islandSize)
	for _, at := range islands {
		if _, err = io.ReadFull(noise("island"), island); err != nil {
			break
		}
		stamp(island, at)
		if _, err = file.WriteAt(island, at); err != nil {
			break
		}
	}
	return errors.Join(err, file.Truncate(sparseSize), file.Close())
}

// checkIslands expects a side to have the file, with zeros between the islands and, but for their edges, holes.
func (s *stage) checkIslands(where string) {
	s.t.Helper()
	file, err := os.Open(s.path(where))
	must(s.t, err)
	defer file.Close()
	var stat unix.Stat_t
	must(s.t, unix.Fstat(int(file.Fd()), &stat))
	const edges = 2 << 20 // of pieces and blocks
	if most := int64(len(islands)) * (islandSize + edges); stat.Size != sparseSize || stat.Blocks*512 > most {
		s.t.Errorf("a file of %d bytes takes %s of the disk, want %d and at most %s",
			stat.Size, humanize.IBytes(uint64(stat.Blocks)*512), int64(sparseSize), humanize.IBytes(uint64(most)))
	}
	want := make([]byte, islandSize)
	_, err = io.ReadFull(noise("island"), want)
	must(s.t, err)
	for _, at := range islands {
		stamp(want, at)
		must(s.t, compareStreams(io.NewSectionReader(file, at, islandSize), bytes.NewReader(want)))
	}
	s.checkBetween(file)
}

// checkBetween looks at whatever is no hole and belongs to no island.
func (s *stage) checkBetween(file *os.File) {
	s.t.Helper()
	previous := int64(0)
	for _, island := range append(islands[:len(islands):len(islands)], sparseSize) {
		for at := previous; at < island; {
			data, err := unix.Seek(int(file.Fd()), at, unix.SEEK_DATA)
			if errors.Is(err, unix.ENXIO) || err == nil && data >= island {
				break
			}
			must(s.t, err)
			hole, err := unix.Seek(int(file.Fd()), data, unix.SEEK_HOLE)
			must(s.t, err)
			end := min(hole, island)
			must(s.t, compareStreams(io.NewSectionReader(file, data, end-data), io.LimitReader(zeroes{}, end-data)))
			at = end
		}
		previous = island + islandSize
	}
}

// zeroes is a stream of them.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
