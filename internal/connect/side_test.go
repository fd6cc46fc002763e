package connect

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// A card in NIC mode, or a user without access to the representors, has none to choose from.
func TestDPUWithoutRepresentors(t *testing.T) {
	err := &report.SideError{Side: wire.DPU, Err: representorNotNamed("0000:03:00.0", nil)}
	if exit.Code(err) != exit.Device || exit.Hint(err) != "run dma-copy doctor" ||
		!strings.HasSuffix(err.Error(), "0000:03:00.0 represents no host function") {
		t.Errorf("error %v with hint %q", err, exit.Hint(err))
	}
}
