package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

const largestTask = 2 << 20 // bytes, of the software device as of BlueField

// TestSizes copies files whose sizes lie at the seams, in both directions.
func TestSizes(t *testing.T) {
	t.Parallel()
	sizes := []int64{0, 1, 4095, 4096, 1 << 20, largestTask - 1, largestTask, largestTask + 1, 100 << 20}
	for _, size := range sizes {
		eachWay(t, strconv.FormatInt(size, 10), size, "")
	}
}

// TestShapes copies with many tasks, few and one in flight, and a last chunk that is shorter than the others.
func TestShapes(t *testing.T) {
	t.Parallel()
	shapes := []struct {
		chunk, depth int
		size         int64
	}{
		{1, 1, 300}, {1, 1024, 3000}, {511, 3, 100_000}, {4096, 1, 1 << 20}, {4096, 7, 4096 * 100}, {4096, 1024, 10_000_001},
		{65536, 16, 65536*33 + 1}, {largestTask, 2, 5*largestTask - 1}, {largestTask, 64, 3 * largestTask},
	}
	for _, shape := range shapes {
		name := fmt.Sprintf("chunk_%d_depth_%d", shape.chunk, shape.depth)
		eachWay(t, name, shape.size, fmt.Sprintf("--chunk %d --depth %d ", shape.chunk, shape.depth))
	}
}

// eachWay copies a file in both directions and both protocols, with more flags for the DPU's side.
func eachWay(t *testing.T, name string, size int64, dpuFlags string) {
	for _, sender := range []string{"host", "dpu"} {
		for protocol, flags := range map[string]string{"native": dpuFlags, "reference": dpuFlags + referenceOnly} {
			t.Run(fmt.Sprintf("%s_from_%s_%s", name, sender, protocol), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, size)
				s.copyOnce(flags)
				s.same()
				s.clean()
			})
		}
	}
}

// TestEveryNameIsRemoved copies often into one folder: neither descriptors nor names pile up in what the runs share.
func TestEveryNameIsRemoved(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.put("host", 10_000)
	for range 20 {
		s.copyOnce("--overwrite")
		s.same()
	}
	s.clean()
	left, err := os.ReadDir(filepath.Join(s.folder, "dpu"))
	if err != nil || len(left) != 1 {
		t.Errorf("%s files (%v), want 1", strconv.Itoa(len(left)), err)
	}
}
