package dmaxfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func TestMain(m *testing.M) { docatest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// mustFail wants an error of this package, with the kind, a cause and a next step.
func mustFail(t *testing.T, err, kind error) {
	t.Helper()
	var failed *job.Error
	if !errors.As(err, &failed) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want a job.Error about the %v", err, kind)
	}
	if failed.Cause == "" || failed.Next == "" {
		t.Errorf("%+v says too little", failed)
	}
}

// writeFile makes a file of its own directory unless path is absolute.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.TempDir(), path)
	}
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func mustContain(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s has %d bytes that are not the %d wanted", path, len(got), len(want))
	}
}

// mustHold wants these names in a directory and no others.
func mustHold(t *testing.T, directory string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	must(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	if len(found) != len(names) {
		t.Errorf("%s holds %q, not %q", directory, found, names)
		return
	}
	for i := range names {
		if found[i] != names[i] {
			t.Errorf("%s holds %q, not %q", directory, found, names)
		}
	}
}
