package main

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// A card in NIC mode, or a user without access to the representors, has none to choose from.
func TestDPUWithoutRepresentors(t *testing.T) {
	err := &report.SideError{Side: negotiate.DPU, Err: representorNotNamed("0000:03:00.0", nil)}
	if report.ExitCode(err) != exit.Device || report.Hint(err) != "run dma-copy doctor" ||
		!strings.HasSuffix(err.Error(), "0000:03:00.0 represents no host function") {
		t.Errorf("error %v with hint %q", err, report.Hint(err))
	}
}
