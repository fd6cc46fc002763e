package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

func TestFileThatChangesWhileItIsRead(t *testing.T) {
	changes := map[string]func(path string) error{
		"grows": func(path string) error { return os.Truncate(path, 10) },
		"is rewritten": func(path string) error {
			return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
		},
	}
	for name, change := range changes {
		path := filepath.Join(t.TempDir(), "file")
		writeFile(t, path, "content")
		file, err := openToRead(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.close()
		if err := file.unchanged(); err != nil {
			t.Errorf("%s, before: %v", name, err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if err := file.unchanged(); !errors.Is(err, dmaxfer.ErrSourceChanged) || exitCode(err) != exit.SourceChanged {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestVerifyReportsAFullDisk(t *testing.T) {
	inNewFolder(t, "a", "same")
	writeFile(t, "b", "same")
	writeFile(t, "c", "other")
	surroundings := streams{stdout: fullDisk{}, stderr: io.Discard, env: func(string) (string, bool) { return "", false }}
	for _, line := range []string{"verify a b", "verify a c", "verify --write - a"} {
		if err := execute(t.Context(), surroundings, words(line), nil); !errors.Is(err, syscall.ENOSPC) || exitCode(err) != exit.Failure {
			t.Errorf("%s: error %v", line, err)
		}
	}
}

// A manifest that appears while the files are read is not replaced either.
func TestManifestThatAppears(t *testing.T) {
	inNewFolder(t, "sums", "theirs")
	err := replacement{path: "sums"}.write(t.Context(), []byte("ours"))
	if !errors.Is(err, dmaxfer.ErrTarget) || exitCode(err) != exit.Target || readFile(t, "sums") != "theirs" {
		t.Errorf("error %v, content %q", err, readFile(t, "sums"))
	}
	if left, _ := os.ReadDir("."); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := (replacement{path: "sums", overwrite: true}).write(t.Context(), []byte("ours")); err != nil || readFile(t, "sums") != "ours" {
		t.Errorf("error %v, content %q", err, readFile(t, "sums"))
	}
}

// Names are the operator's, but may come from elsewhere: they reach neither the terminal nor the next line as they are.
func TestNamesWithControlCharacters(t *testing.T) {
	inNewFolder(t, "a\nb\x1b", "content")
	if got := invoke(nil, "verify", "--write", "sums", "a\nb\x1b"); got.err != nil || got.stderr == "" {
		t.Fatalf("error %v, stderr %q", got.err, got.stderr)
	}
	if text := readFile(t, "sums"); !strings.HasPrefix(text, `\xxh3:`) || !strings.HasSuffix(text, "  a\\nb\x1b\n") {
		t.Errorf("the manifest is %q", text)
	}
	want := `ok    a\nb\x1b  ` + digestOfText(t, "content") + "\n"
	if got := invoke(nil, "verify", "sums"); got.err != nil || got.stdout != want {
		t.Errorf("error %v, stdout %q, want %q", got.err, got.stdout, want)
	}
}

// A job that does not return, as a read from a file system that does not answer, does not outlive the interrupt.
func TestJobThatBlocksIsLeftBehind(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	blocked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() {
		<-blocked
		interrupt(exit.Interrupted{Signal: syscall.SIGINT})
	}()
	err := interruptible(ctx, func() error {
		close(blocked)
		<-release
		return nil
	})
	if exitCode(err) != exit.Signal+int(syscall.SIGINT) {
		t.Errorf("error %v", err)
	}
}

func digestOfText(t *testing.T, text string) string {
	t.Helper()
	sum, _, err := digest.Of(t.Context(), digest.XXH3, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}
