package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

const (
	sparseSize = 1 << 40
	extentSize = 12<<20 + 123 // all together more than the window

	sparseWindow = 16 * 1 << 20 // bytes of the window of a transfer with the default chunk and depth
)

// extentOffsets are where the sparse file has data: at both ends, across 4 GiB, and elsewhere.
var extentOffsets = []int64{0, 1<<32 - 1<<20, 17<<30 + 12345, 777 << 30, sparseSize - extentSize}

// TestSparse copies a file of 1 TiB that is nearly all holes, in one direction by chance: the target takes no more of
// the disk than the source, and neither side takes more memory than its window and an allowance.
func TestSparse(t *testing.T) {
	t.Parallel()
	for _, sender := range byChance(bothSides) {
		t.Run(sender+"_sends", func(t *testing.T) {
			f := newFixture(t)
			must(t, writeSparseFile(f.path(sender)))
			host, dpu := f.start("host", hostCommand), f.start("dpu", dpuCommand)
			hostPeak, dpuPeak := peak(host, "VmHWM"), peak(dpu, "VmHWM")
			host.expectExit(exitOK)
			dpu.expectExit(exitOK)
			checkSparsePeak(t, "host", <-hostPeak)
			checkSparsePeak(t, "DPU", <-dpuPeak)
			f.checkSparseFile(peerOf(sender))
			f.expectClean()
		})
	}
}

func checkSparsePeak(t *testing.T, name string, peak uint64) {
	t.Helper()
	t.Logf("%s's peak of resident memory: %s", name, quantity.Bytes(peak))
	if most := uint64(sparseWindow + memoryAllowance); !raceDetector && (peak == 0 || peak > most) {
		t.Errorf("%s's peak of resident memory is %s, want more than 0 and at most %s",
			name, quantity.Bytes(peak), quantity.Bytes(most))
	}
}

func writeSparseFile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	extent := make([]byte, extentSize)
	_, err = io.ReadFull(randomStream("extent"), extent)
	for _, offset := range extentOffsets {
		stamp(extent, offset)
		_, writeErr := file.WriteAt(extent, offset)
		err = errors.Join(err, writeErr)
	}
	return errors.Join(err, file.Truncate(sparseSize), file.Close())
}

// checkSparseFile expects a side to have the file, with zeros between the extents that are holes except at the edges.
func (f *fixture) checkSparseFile(side string) {
	f.t.Helper()
	file, err := os.Open(f.path(side))
	must(f.t, err)
	defer file.Close()
	var stat unix.Stat_t
	must(f.t, unix.Fstat(int(file.Fd()), &stat))
	const edges = 2 << 20 // of chunks and blocks, for each extent
	if most := int64(len(extentOffsets)) * (extentSize + edges); stat.Size != sparseSize || stat.Blocks*512 > most {
		f.t.Errorf("a file of %d bytes takes %s of the disk, want %d and at most %s",
			stat.Size, quantity.Bytes(uint64(stat.Blocks)*512), int64(sparseSize), quantity.Bytes(uint64(most)))
	}
	want := make([]byte, extentSize)
	_, err = io.ReadFull(randomStream("extent"), want)
	must(f.t, err)
	end := int64(0)
	for _, offset := range extentOffsets {
		stamp(want, offset)
		must(f.t, compareStreams(io.NewSectionReader(file, offset, extentSize), bytes.NewReader(want)))
		f.checkZeros(file, end, offset)
		end = offset + extentSize
	}
	f.checkZeros(file, end, sparseSize)
}

// checkZeros expects whatever is not a hole in this range of a file to be zeros.
func (f *fixture) checkZeros(file *os.File, from, to int64) {
	f.t.Helper()
	for from < to {
		data, err := unix.Seek(int(file.Fd()), from, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && data >= to {
			return
		}
		must(f.t, err)
		hole, err := unix.Seek(int(file.Fd()), data, unix.SEEK_HOLE)
		must(f.t, err)
		from = min(hole, to)
		must(f.t, compareStreams(io.NewSectionReader(file, data, from-data), io.LimitReader(zeroReader{}, from-data)))
	}
}

// zeroReader is an endless stream of zeros.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
