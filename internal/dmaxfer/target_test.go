package dmaxfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newTarget makes a target with content, of which nothing is left at the end of the test unless it was committed.
func newTarget(t *testing.T, path, content string, overwrite bool) *target {
	t.Helper()
	made, err := createTarget(path, overwrite)
	must(t, err)
	t.Cleanup(made.abort)
	must(t, made.allocate(t.Context(), int64(len(content))))
	must(t, made.writeAt([]byte(content), 0))
	return made
}

func TestTargetCommits(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	made := newTarget(t, path, "content", false)
	if _, err := os.Stat(path); err == nil {
		t.Error("the final name is there before the commit")
	}
	must(t, made.commit())
	made.abort()
	mustContain(t, path, "content")
	mustHold(t, directory, "file")
}

func TestTargetAborts(t *testing.T) {
	directory := t.TempDir()
	made := newTarget(t, filepath.Join(directory, "file"), "content", false)
	made.abort()
	made.abort()
	mustHold(t, directory)
}

func TestTargetKeepsOldContentUntilCommit(t *testing.T) {
	path := writeFile(t, "file", "old")
	made := newTarget(t, path, "new content", true)
	mustContain(t, path, "old")
	must(t, made.commit())
	mustContain(t, path, "new content")
	newTarget(t, path, "newer", true).abort()
	mustContain(t, path, "new content")
	mustHold(t, filepath.Dir(path), "file")
}

func TestTargetThatAppearedIsKept(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	made := newTarget(t, path, "content", false)
	writeFile(t, path, "somebody else's")
	mustFail(t, made.commit(), ErrTarget)
	mustContain(t, path, "somebody else's")
	mustHold(t, directory, "file")
}

func TestTargetWhoseDirectoryVanished(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "directory")
	must(t, os.Mkdir(directory, 0o700))
	made := newTarget(t, filepath.Join(directory, "file"), "content", true)
	must(t, os.RemoveAll(directory))
	mustFail(t, made.commit(), ErrTarget)
}

func TestTargetWithTheLongestName(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", maxNameLength), strings.Repeat("\u00fc", maxNameLength/2)} {
		directory := t.TempDir()
		must(t, newTarget(t, filepath.Join(directory, name), "content", false).commit())
		mustHold(t, directory, name)
	}
	_, err := createTarget(filepath.Join(t.TempDir(), "missing", "name"), false)
	mustFail(t, err, ErrTarget)
}

func TestTemporaryNamesDiffer(t *testing.T) {
	first, second := temporaryName("file"), temporaryName("file")
	if first == second || !strings.HasPrefix(first, ".file.") {
		t.Errorf("%s and %s", first, second)
	}
}

func TestTargetIsAllocated(t *testing.T) {
	for _, size := range []int64{0, 1, 4096, allocationStep + 1} {
		made, err := createTarget(filepath.Join(t.TempDir(), "file"), false)
		must(t, err)
		must(t, made.allocate(t.Context(), size))
		info, err := made.file.Stat()
		must(t, err)
		if info.Size() != size {
			t.Errorf("%d bytes were allocated, not %d", info.Size(), size)
		}
		made.abort()
	}
}

func TestTargetIsFilledWithZerosWhereNothingElseAllocates(t *testing.T) {
	const size = 2<<20 + 5
	path := filepath.Join(t.TempDir(), "file")
	made, err := createTarget(path, false)
	must(t, err)
	t.Cleanup(made.abort)
	must(t, made.fillWithZeros(0, 3))
	must(t, made.fillWithZeros(3, size-3))
	must(t, made.commit())
	mustContain(t, path, string(make([]byte, size)))
}

func TestAllocationEndsWithItsContext(t *testing.T) {
	made, err := createTarget(filepath.Join(t.TempDir(), "file"), false)
	must(t, err)
	t.Cleanup(made.abort)
	because := errors.New("it was enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(because)
	mustBe(t, made.allocate(ctx, 1), because)
}
