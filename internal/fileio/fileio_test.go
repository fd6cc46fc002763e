package fileio

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

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
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
		file, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := file.Unchanged(); err != nil {
			t.Errorf("%s, before: %v", name, err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if err := file.Unchanged(); !errors.Is(err, job.ErrSourceChanged) ||
			exit.Code(err) != exit.SourceChanged {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A file that appears while the content is computed is not replaced without overwrite.
func TestReplacementKeepsNewFile(t *testing.T) {
	inNewDir(t, "sums", "theirs")
	write := func(overwrite bool) error {
		w, err := Create("sums", overwrite)
		if err != nil {
			return err
		}
		defer w.Discard()
		_, err = io.WriteString(w, "ours")
		return errors.Join(err, w.Commit(t.Context()))
	}
	err := write(false)
	if !errors.Is(err, job.ErrTarget) || exit.Code(err) != exit.Target || readFile(t, "sums") != "theirs" {
		t.Errorf("error %v, content %q", err, readFile(t, "sums"))
	}
	if left, _ := os.ReadDir("."); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := write(true); err != nil || readFile(t, "sums") != "ours" {
		t.Errorf("error %v, content %q", err, readFile(t, "sums"))
	}
}

// What does not fit into memory at once is written under a temporary name, of which nothing is left.
func TestReplacementOfManyPieces(t *testing.T) {
	inNewDir(t, "sums", "theirs")
	for _, commit := range []bool{false, true} {
		w, err := Create("sums", true)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for i := range 300 {
			piece := strings.Repeat(string(rune('a'+i%26)), 10_000)
			want += piece
			if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
				t.Fatalf("%d bytes, error %v", n, err)
			}
		}
		if !commit {
			want = "theirs"
		} else if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Discard()
		if got := readFile(t, "sums"); got != want {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if left, _ := os.ReadDir("."); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// A job that does not return, such as a read from a file system that does not answer, is left behind after an
// interrupt.
func TestJobThatBlocksIsLeftBehind(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	blocked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() {
		<-blocked
		interrupt(exit.Interrupted{Signal: syscall.SIGINT})
	}()
	err := Interruptible(ctx, func() error {
		close(blocked)
		<-release
		return nil
	})
	if exit.Code(err) != exit.Signal+int(syscall.SIGINT) {
		t.Errorf("error %v", err)
	}
}

// inNewDir makes a fresh directory the working directory and puts a file there, so that errors show a short name.
func inNewDir(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, name, text)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
