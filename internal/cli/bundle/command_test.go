package bundle

import (
	"bytes"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/root"
)

func TestBundleHasVariables(t *testing.T) {
	var out bytes.Buffer
	environ := func() []string {
		return []string{"UCX_TLS=tcp", "HOME=/root", "DMA_COPY_WITH=sesame", "DMA_COPY_WAIT=3s", "AWS_SECRET=x"}
	}
	if err := writeVariables(&out, root.Streams{Environ: environ}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "DMA_COPY_WAIT=3s\nDMA_COPY_WITH=(left out)\nUCX_TLS=tcp\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
