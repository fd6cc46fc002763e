package fileio_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/fileio"
)

// A FIFO is read if somebody writes to it, also if that begins later or writes nothing. It is not waited for endlessly.
func TestOpenList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fileio.OpenList(path, time.Millisecond); !errors.Is(err, fileio.ErrNoWriter) {
		t.Errorf("without a writer: %v", err)
	}
	for _, text := range []string{"list", ""} {
		written := make(chan error, 1)
		go func() { written <- os.WriteFile(path, []byte(text), 0o600) }() // waits for the reader
		file, err := fileio.OpenList(path, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(file)
		if err != nil || string(got) != text {
			t.Errorf("%q: read %q, %v", text, got, err)
		}
		if err := errors.Join(file.Close(), <-written); err != nil {
			t.Error(err)
		}
	}
	if _, err := fileio.OpenList(path+" that is not there", time.Minute); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
