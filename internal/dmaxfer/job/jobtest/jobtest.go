// Package jobtest has what the tests of transfers expect of errors and files. It is for tests only.
package jobtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// MustFail ends the test unless err is a job.Error of the kind; it must name a cause and a next step.
func MustFail(t *testing.T, err, kind error) {
	t.Helper()
	var failed *job.Error
	if !errors.As(err, &failed) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want a job.Error about the %v", err, kind)
	}
	if failed.Cause == "" || failed.Next == "" {
		t.Errorf("%+v says too little", failed)
	}
}

// WriteFile creates a file and returns its path, which is in a new directory unless it is absolute.
func WriteFile(t *testing.T, path, content string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.TempDir(), path)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// MustContain fails the test unless the file has this content.
func MustContain(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s has %d bytes that are not the %d wanted", path, len(got), len(want))
	}
}

// MustHold fails the test unless a directory holds these names, sorted, and no others.
func MustHold(t *testing.T, directory string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	if !slices.Equal(found, names) {
		t.Errorf("%s holds %q, not %q", directory, found, names)
	}
}
