package main

import (
	"io"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// A copy between two terminals has nothing to read or write.
func TestStreamBetweenTerminals(t *testing.T) {
	stdio := root.Streams{
		Stdout: io.Discard, Stderr: io.Discard, Env: func(string) (string, bool) { return "", false },
		Data: root.DataStreams{Nowhere: true},
	}
	if err := program.New().Execute(t.Context(), stdio, words("-f -")); exit.Code(err) != exit.Usage {
		t.Errorf("error %v", err)
	}
}
