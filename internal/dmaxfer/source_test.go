package dmaxfer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func mustOpenSource(t *testing.T, path string) *source {
	t.Helper()
	s, err := openSource(path)
	must(t, err)
	t.Cleanup(s.close)
	return s
}

func TestSourceThatStaysIsVerified(t *testing.T) {
	path := writeFile(t, "file", "content")
	s := mustOpenSource(t, path)
	buffer := make([]byte, 7)
	must(t, s.readAt(buffer, 0))
	must(t, s.readAt(buffer[:3], 4))
	if string(buffer[:3]) != "ent" {
		t.Errorf("at 4 there is %q", buffer[:3])
	}
	must(t, s.verify())
}

// change repeats what it does until the kernel's clock has stamped it: two writes within a tick have one time.
func change(t *testing.T, s *source, what func()) {
	t.Helper()
	for range 1000 {
		what()
		if is, err := identify(s.file); err != nil || is.changed != s.was.changed {
			must(t, err)
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the file system's clock stands still")
}

func TestSourceThatChangesIsNoticed(t *testing.T) {
	for name, what := range map[string]func(t *testing.T, path string){
		"appended": func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = file.WriteString("more")
			must(t, err)
			must(t, file.Close())
		},
		"truncated": func(t *testing.T, path string) { must(t, os.Truncate(path, 3)) },
		"emptied":   func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"rewritten": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("CONTENT"), 0o600)) },
		"rewritten with its old time": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte("CONTENT"), 0o600))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"replaced": func(t *testing.T, path string) { must(t, os.Rename(writeFile(t, "other", "CONTENT"), path)) },
		"removed":  func(t *testing.T, path string) { _ = os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "file", "content")
			s := mustOpenSource(t, path)
			change(t, s, func() { what(t, path) })
			mustFail(t, s.verify(), ErrSourceChanged)
		})
	}
}

func TestSourceThatShrankEndsEarly(t *testing.T) {
	path := writeFile(t, "file", "content")
	s := mustOpenSource(t, path)
	must(t, os.Truncate(path, 3))
	mustFail(t, s.readAt(make([]byte, 7), 0), ErrSourceChanged)
	mustFail(t, s.readAt(make([]byte, 1), 3), ErrSourceChanged)
	must(t, s.readAt(make([]byte, 3), 0))
}

func TestSourceOpens(t *testing.T) {
	directory := t.TempDir()
	pipe := filepath.Join(directory, "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{filepath.Join(directory, "missing"), directory, pipe} {
		_, err := openSource(path)
		mustFail(t, err, ErrSource)
	}
}
