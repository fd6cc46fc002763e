package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages of docs/reference are what `make reference` writes, and there are no others.
func TestReferenceIsCurrent(t *testing.T) {
	pages := filepath.Join("..", "..", "docs", "reference")
	directory := t.TempDir()
	written := filepath.Join(directory, "reference")
	writeFile(t, filepath.Join(directory, "events.schema.json"),
		readFile(t, "..", "..", "docs", "events.schema.json"))
	if got := invoke(nil, "reference", written); got.err != nil || got.stdout != "" || got.stderr != "" {
		t.Fatalf("error %v, printed %q and %q", got.err, got.stdout, got.stderr)
	}
	want := namesBelow(t, written)
	if got := namesBelow(t, pages); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("docs/reference has %q, want %q: run make reference", got, want)
	}
	for _, name := range want {
		if readFile(t, pages, name) != readFile(t, written, name) {
			t.Errorf("docs/reference/%s is not current: run make reference", name)
		}
	}
}

// namesBelow returns the paths of the files below a directory, relative to it.
func namesBelow(t *testing.T, directory string) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(directory), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}
