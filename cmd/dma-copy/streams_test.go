package main

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// A file's bytes are neither written to a terminal nor read from one.
func TestStreamsAreNoTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	if _, err := refuseIfTerminal(terminal, errStdoutIsTerminal, nil)(); err != errStdoutIsTerminal {
		t.Errorf("error %v, want %v", err, errStdoutIsTerminal)
	}
	s := config.Copy{File: "-"}
	err = runner(streams{data: dataStreams{nowhere: true}})(t.Context(), s, zerolog.Nop())
	if report.ExitCode(err) != exit.Usage {
		t.Errorf("error %v", err)
	}
}
