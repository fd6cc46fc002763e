//go:build ucx && cgo

package ucxpath

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Where UCX finds no shared memory, the error names what is too small and what to do, and is one of the path.
func TestWindowWithoutSharedMemory(t *testing.T) {
	p := &Path{path: negotiate.PathRMA}
	for _, status := range []ucx.Status{ucx.StatusNoMemory, ucx.StatusNoResource} {
		err := p.explain(&ucx.Error{Op: "ucp_worker_create", Status: status, Text: "no resources"})
		failed, is := errors.AsType[*job.Error](err)
		if !is || !errors.Is(err, job.ErrCapability) || !errors.Is(err, status) ||
			!strings.Contains(failed.Error(), "/dev/shm") {
			t.Errorf("%d: %v", status, err)
		}
	}
	other := errors.New("other")
	if got := p.explain(other); got != other {
		t.Errorf("got %v", got)
	}
}
