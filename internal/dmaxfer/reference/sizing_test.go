//go:build cgo

package reference

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const mega = 1 << 20

func TestShapeIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		limits string
		chunk  int64
		depth  int
		size   int64
		want   shape
	}{
		"default":                   {"", 0, 0, 100 * mega, shape{mega, 8}},
		"as asked":                  {"", 12345, 3, 100 * mega, shape{12345, 3}},
		"no deeper than the file":   {"", 0, 0, 2*mega + 1, shape{mega, 3}},
		"one chunk":                 {"", 0, 0, mega, shape{mega, 1}},
		"one byte":                  {"", 0, 64, 1, shape{mega, 1}},
		"nothing":                   {"", 0, 0, 0, shape{mega, 1}},
		"no more than the device":   {"max_buf_size=4096,max_dma_tasks=2", 0, 0, 100 * mega, shape{4096, 2}},
		"all that the device can":   {"", 2 * mega, 1024, 1 << 40, shape{2 * mega, 1024}},
		"the largest file there is": {"", 0, 0, 1 << 46, shape{mega, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			s := docatest.OpenSides(t, c.limits)
			must(t, job.CheckLimits(s.DPU, wire.DPU, c.chunk, c.depth))
			got, err := chooseShape(s.DPU, c.chunk, c.depth, c.size)
			must(t, err)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestShapeBeyondTheDeviceIsRefused(t *testing.T) {
	s := docatest.OpenSides(t, "")
	jobtest.MustFail(t, job.CheckLimits(s.DPU, wire.DPU, 2*mega+1, 0), job.ErrSettings)
	jobtest.MustFail(t, job.CheckLimits(s.DPU, wire.DPU, 0, 1025), job.ErrSettings)
	jobtest.MustFail(t, job.CheckLimits(s.Host, wire.Host, 2*mega+1, 0), job.ErrSettings)
	must(t, job.CheckLimits(s.Host, wire.Host, 2*mega, 1025)) // the peer's engine copies
}

// A driver need not know its limits.
func TestChunkForAnUnknownDevice(t *testing.T) {
	if got := suitableChunk(0); got != defaultChunk {
		t.Errorf("got %d, want %d", got, int64(defaultChunk))
	}
}
