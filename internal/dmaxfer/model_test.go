//go:build cgo

package dmaxfer

import (
	"errors"
	"os"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
)

// A device that moves no bytes reports that each copy succeeded. The digests differ, and no file appears.
func TestCopyOfNoBytesFailsItsDigest(t *testing.T) {
	setup := newSetup(t, "model=400g,move_bytes=0")
	setup.host.Log, setup.dpu.Log = lenientLogs(t)
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			jobtest.WriteFile(t, way[0].File, content(3*testChunk))
			both := setup.run(t.Context())
			mustBe(t, both.errs[way[1].Side], job.ErrDigest)
			if _, err := os.Stat(way[1].File); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a file of bytes that were not copied: %v", err)
			}
			must(t, os.Remove(way[0].File))
		})
	}
}
