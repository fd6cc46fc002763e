//go:build ucx && cgo

package ucxpath

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Where UCX finds no shared memory, the error names what is too small and what to do, in the words of
// docs/guide/troubleshooting.md, and is one of the path.
func TestWindowWithoutSharedMemory(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guide/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &Path{path: wire.PathRMA}
	for _, status := range []ucx.Status{ucx.StatusNoMemory, ucx.StatusNoResource} {
		err := p.explain(&ucx.Error{Op: "ucp_worker_create", Status: status, Text: "no resources"})
		failed, is := errors.AsType[*job.Error](err)
		if !is || !errors.Is(err, job.ErrCapability) || !errors.Is(err, status) ||
			!strings.Contains(failed.Error(), "/dev/shm") {
			t.Errorf("%d: %v", status, err)
			continue
		}
		cause, _, _ := strings.Cut(strings.TrimPrefix(failed.Cause, "path rma: "), " (")
		for _, text := range []string{"| `" + cause + "` |", "| " + failed.Next} {
			if !bytes.Contains(page, []byte(text)) {
				t.Errorf("the page lacks %q", text)
			}
		}
	}
	other := errors.New("other")
	if got := p.explain(other); got != other {
		t.Errorf("got %v", got)
	}
}
