package e2e

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a receiver of "file" leaves for a later copy.
const (
	partOfFile    = ".file.dma-copy-part"
	journalOfFile = ".file.dma-copy-journal"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return string(text)
}

// mustHoldOnly expects nothing else in a folder, and returns what of the hidden files there is.
func mustHoldOnly(t *testing.T, folder string, names ...string) (hidden []string) {
	t.Helper()
	there, err := os.ReadDir(folder)
	must(t, err)
	for _, entry := range there {
		if !slices.Contains(names, entry.Name()) {
			t.Errorf("%s is left", filepath.Join(folder, entry.Name()))
		}
		if strings.HasPrefix(entry.Name(), ".") {
			hidden = append(hidden, entry.Name())
		}
	}
	return hidden
}

// keptIn is how much of the file a later copy will take over: what the journal says, if there is a partial file that it is about. A receiver that died very early leaves an empty journal, or none.
func keptIn(t *testing.T, folder string) int64 {
	t.Helper()
	const size, prefixAt = 68, 56
	journal, err := os.ReadFile(filepath.Join(folder, journalOfFile))
	part, partErr := os.Stat(filepath.Join(folder, partOfFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(partErr, fs.ErrNotExist) {
		return 0
	}
	must(t, errors.Join(err, partErr))
	if len(journal) == 0 {
		return 0
	}
	if len(journal) != size {
		t.Fatalf("the journal has %d bytes, not %d", len(journal), size)
	}
	kept := int64(binary.BigEndian.Uint64(journal[prefixAt:]))
	if kept > part.Size() {
		t.Errorf("the journal vouches for %d bytes of a file of %d", kept, part.Size())
	}
	return kept
}
