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
	schema := readFile(t, "..", "..", "docs", "events.schema.json")
	must(t, os.WriteFile(filepath.Join(directory, "events.schema.json"), []byte(schema), 0o600))
	must(t, run([]string{"reference", written}))
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

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(content)
}
