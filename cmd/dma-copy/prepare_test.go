package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// A variable that is mistyped is a warning, also where the command line is refused, and changes no exit code.
func TestMistypedVariableIsAWarning(t *testing.T) {
	for line, code := range map[string]int{"-f x": 0, "-f x --wait 0": 3, "-f x -l ERROR": 0} {
		var stdout, stderr bytes.Buffer
		stdio := streams{
			stdout: &stdout, stderr: &stderr,
			env:     func(string) (string, bool) { return "", false },
			environ: func() []string { return []string{"DMA_COPY_DIGSET=xxh3"} },
		}
		err := execute(t.Context(), stdio, words(line),
			func(context.Context, config.Copy, zerolog.Logger) error { return nil })
		if got := report.ExitCode(err); got != code {
			t.Errorf("%s: exit code %d, want %d", line, got, code)
		}
		const note = "unknown environment variable DMA_COPY_DIGSET (did you mean DMA_COPY_DIGEST?)"
		wanted := !strings.Contains(line, "ERROR")
		if got := strings.Contains(stderr.String(), note); got != wanted || stdout.Len() > 0 {
			t.Errorf("%s: printed %q and %q", line, stdout.String(), stderr.String())
		}
	}
}

// Descriptors in use count wherever they are below the limit.
func TestUnusedDescriptors(t *testing.T) {
	const first, count = 700, 40
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < first+count {
		t.Fatalf("the limit on file descriptors is %d (%v)", limit.Cur, err)
	}
	before, err := unusedDescriptors(first, count)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{first, first + 7, first + count - 1} {
		opened, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, fd)
		if err != nil || opened != fd {
			t.Fatalf("file descriptor %d instead of %d (%v)", opened, fd, err)
		}
		defer func() { _ = unix.Close(opened) }()
	}
	if got, err := unusedDescriptors(first, count); err != nil || got != before-3 {
		t.Errorf("%d of %d are unused (%v), and %d before three were opened", got, count, err, before)
	}
}
