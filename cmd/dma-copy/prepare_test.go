package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// A variable that is mistyped is a warning, also where the command line is refused, and changes no exit code.
func TestMistypedVariableIsAWarning(t *testing.T) {
	for line, code := range map[string]int{"-f x": 0, "-f x --wait 0": 3, "-f x -l ERROR": 0} {
		var stdout, stderr bytes.Buffer
		stdio := root.Streams{
			Stdout: &stdout, Stderr: &stderr,
			Env:     func(string) (string, bool) { return "", false },
			Environ: func() []string { return []string{"DMA_COPY_DIGSET=xxh3"} },
		}
		err := withCopy(func(copying.Settings) error { return nil }).Execute(t.Context(), stdio, words(line))
		if got := exit.Code(err); got != code {
			t.Errorf("%s: exit code %d, want %d", line, got, code)
		}
		const note = "unknown environment variable DMA_COPY_DIGSET (did you mean DMA_COPY_DIGEST?)"
		wanted := !strings.Contains(line, "ERROR")
		if got := strings.Contains(stderr.String(), note); got != wanted || stdout.Len() > 0 {
			t.Errorf("%s: printed %q and %q", line, stdout.String(), stderr.String())
		}
	}
}
