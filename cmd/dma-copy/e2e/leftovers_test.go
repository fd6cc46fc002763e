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

// What a receiver of "file" leaves for a later transfer to resume from.
const (
	partialName = ".file.dma-copy-part"
	journalName = ".file.dma-copy-journal"
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

// expectOnly expects no other files in a directory than the named ones, and returns the hidden files that exist.
func expectOnly(t *testing.T, dir string, names ...string) (hidden []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, file := range files {
		if !slices.Contains(names, file.Name()) {
			t.Errorf("%s is left", filepath.Join(dir, file.Name()))
		}
		if strings.HasPrefix(file.Name(), ".") {
			hidden = append(hidden, file.Name())
		}
	}
	return hidden
}

// resumableBytes returns how much of the file a later transfer will not copy again: what the journal says, if the
// partial file exists. A receiver that was killed very early leaves an empty journal, or none.
func resumableBytes(t *testing.T, dir string) int64 {
	t.Helper()
	const journalSize, prefixOffset = 68, 56
	journal, err := os.ReadFile(filepath.Join(dir, journalName))
	partial, partialErr := os.Stat(filepath.Join(dir, partialName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(partialErr, fs.ErrNotExist) {
		return 0
	}
	must(t, errors.Join(err, partialErr))
	if len(journal) == 0 {
		return 0
	}
	if len(journal) != journalSize {
		t.Fatalf("the journal has %d bytes, want %d", len(journal), journalSize)
	}
	prefix := int64(binary.BigEndian.Uint64(journal[prefixOffset:]))
	if prefix > partial.Size() {
		t.Errorf("the journal lists %d bytes of a partial file of %d", prefix, partial.Size())
	}
	return prefix
}

// leftovers returns the sockets in a runtime directory and the temporary files in other directories.
func leftovers(runtime string, dirs []string) ([]string, error) {
	left, err := filesIn(runtime, func(e os.DirEntry) bool { return e.Type()&os.ModeSocket != 0 })
	for _, dir := range dirs {
		temporary, dirErr := filesIn(dir, func(e os.DirEntry) bool { return strings.Contains(e.Name(), ".dma-copy-") })
		err = errors.Join(err, dirErr)
		left = append(left, temporary...)
	}
	return left, err
}

// filesIn returns the files of a directory for which wanted is true, with the directory's own name before theirs.
func filesIn(dir string, wanted func(os.DirEntry) bool) (names []string, err error) {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		if wanted(file) {
			names = append(names, filepath.Join(filepath.Base(dir), file.Name()))
		}
	}
	return names, err
}
