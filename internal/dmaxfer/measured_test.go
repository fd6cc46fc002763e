//go:build cgo

package dmaxfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A side that measures touches no file, regardless of what its peer sends.
func TestLinkedMeasurementOfFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		t.Chdir(t.TempDir())
		to.Measure = 1 << 20
		must(t, os.Mkdir(from.File, 0o750))
		jobtest.WriteFile(t, filepath.Join(from.File, "a"), "content")
		if err := l.copy(t.Context(), sender).errs[sender.Other()]; !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("a directory: %v", err)
		}
		must(t, os.RemoveAll(from.File))
		jobtest.WriteFile(t, from.File, "content")
		l.mustCopy(t, sender)
		jobtest.MustHold(t, ".")
		jobtest.MustHold(t, filepath.Dir(to.File))
	})
}

// A measurement moves all bytes through the window, in the chunks and by the engines that it was asked for, and touches
// no file. The next one with the same values finds the window open.
func TestLinkedMeasurement(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		const size, chunk, depth = 40*testChunk + 1, testChunk, 8
		for _, lanes := range []int{1, 3, 3} {
			for _, o := range []*Options{&l.host, &l.dpu} {
				o.Measure, o.Chunk, o.Depth, o.Lanes = size, chunk, depth, lanes
				o.Digest, o.Durability, o.NoSparse = digest.None, wire.DurabilityNone, true
			}
			for side, is := range l.mustCopy(t, sender).summaries {
				if is.Size != size || is.Chunk != chunk || is.Depth != depth || is.Sent != (side == sender) {
					t.Errorf("%s: %+v", side, is)
				}
			}
			if got := len(l.opened[wire.DPU].last.Engines); got > 0 && got != lanes {
				t.Errorf("%d engines, want %d", got, lanes)
			}
		}
		if opened := l.opened[wire.DPU].windows; opened != 2 {
			t.Errorf("%d windows were opened, want 2", opened)
		}
		from, to := l.files(sender)
		jobtest.MustHold(t, filepath.Dir(from.File))
		jobtest.MustHold(t, filepath.Dir(to.File))
	})
}
