package main

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// A file's bytes are neither written to a terminal nor read from one.
func TestStreamsAreNoTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	if _, err := root.RefuseIfTerminal(terminal, root.ErrStdoutIsTerminal, nil)(); err != root.ErrStdoutIsTerminal {
		t.Errorf("error %v, want %v", err, root.ErrStdoutIsTerminal)
	}
	s := copying.Settings{File: "-"}
	err = runCopy(t.Context(), root.Streams{Data: root.DataStreams{Nowhere: true}}, s, zerolog.Nop())
	if exit.Code(err) != exit.Usage {
		t.Errorf("error %v", err)
	}
}
