package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
)

const largestTask = 2 << 20 // bytes, of the software device as of BlueField

// TestSizes copies files whose sizes are at the limits of pages, chunks and tasks, in both directions.
func TestSizes(t *testing.T) {
	t.Parallel()
	sizes := []int64{0, 1, 4095, 4096, 1 << 20, largestTask - 1, largestTask, largestTask + 1, 100 << 20}
	for _, size := range sizes {
		testTransfers(t, strconv.FormatInt(size, 10), size, "")
	}
}

// TestChunksAndDepths copies with many, few and one chunk in flight, and a last chunk that is shorter than the others.
func TestChunksAndDepths(t *testing.T) {
	t.Parallel()
	cases := []struct {
		chunk, depth int
		size         int64
	}{
		{1, 1, 300}, {1, 1024, 3000}, {511, 3, 100_000},
		{4096, 1, 1 << 20}, {4096, 7, 4096 * 100}, {4096, 1024, 10_000_001},
		{65536, 16, 65536*33 + 1}, {largestTask, 2, 5*largestTask - 1}, {largestTask, 64, 3 * largestTask},
	}
	for _, tc := range cases {
		name := fmt.Sprintf("chunk_%d_depth_%d", tc.chunk, tc.depth)
		testTransfers(t, name, tc.size, fmt.Sprintf("--chunk %d --depth %d ", tc.chunk, tc.depth))
	}
}

// testTransfers copies a file with both protocols, in a direction each, with more flags for the DPU.
func testTransfers(t *testing.T, name string, size int64, dpuFlags string) {
	t.Helper()
	for protocol, flags := range map[string]string{"native": dpuFlags, "reference": dpuFlags + referenceFlag} {
		for _, sender := range byChance(bothSides) {
			t.Run(fmt.Sprintf("%s_from_%s_%s", name, sender, protocol), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.createFile(sender, size)
				f.expectTransfer(flags)
				f.expectSameFiles()
				f.expectClean()
			})
		}
	}
}

// TestRepeatedTransfersLeaveNothing copies often with one runtime directory, in which no descriptors or names may
// accumulate.
func TestRepeatedTransfersLeaveNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createFile("host", 10_000)
	for range 20 {
		f.expectTransfer("--overwrite")
		f.expectSameFiles()
	}
	f.expectClean()
	expectOnly(t, filepath.Join(f.dir, "dpu"), "file")
}
