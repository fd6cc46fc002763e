package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRetry(t *testing.T) {
	results := []error{unix.EINTR, &fs.PathError{Err: unix.EINTR}, unix.EIO, nil}
	err := retry(func() error {
		result := results[0]
		results = results[1:]
		return result
	})
	if !errors.Is(err, unix.EIO) || len(results) != 1 {
		t.Errorf("%v, and %d results are left", err, len(results))
	}
}

// The fallbacks for file systems without RENAME_NOREPLACE.
func TestRenameIfAbsentOtherwise(t *testing.T) {
	t.Run("by hard links", func(t *testing.T) {
		testRenameWith(t, func(dir *osDir) func(from, to string) error { return dir.Link })
	})
	for _, err := range []error{unix.EPERM, unix.ENOSYS, unix.EOPNOTSUPP} {
		t.Run(err.Error(), func(t *testing.T) {
			testRenameWith(t, func(dir *osDir) func(from, to string) error {
				return func(_, to string) error { return dir.failed("link", to, err) }
			})
		})
	}
}

func testRenameWith(t *testing.T, link func(*osDir) func(from, to string) error) {
	folder := t.TempDir()
	for _, name := range []string{"from", "taken"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := OS.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	dir := opened.(*osDir)
	if err := dir.renameWith(link(dir), "from", "taken"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := dir.renameWith(link(dir), "from", "to"); err != nil {
		t.Error(err)
	}
	names, err := Names(dir)
	if err != nil || len(names) != 2 || names[0] != "taken" || names[1] != "to" {
		t.Errorf("there are %q, %v", names, err)
	}
}

func TestKernelVersion(t *testing.T) {
	for release, want := range map[string]bool{
		"5.8.0": true, "5.15.0-91-generic": true, "6.1": true, "10.0.1": true, "5.8-rc1": true,
		"5.7.19": false, "4.19.0-25-amd64": false, "3.10.0-1160.el7.x86_64": false, "": false, "unknown": false,
	} {
		if got := atLeast(release, 5, 8); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
}

func TestReason(t *testing.T) {
	for _, err := range []error{
		unix.EIO, &fs.PathError{Op: "open", Path: "/x", Err: unix.EIO}, &os.LinkError{Op: "link", Err: unix.EIO},
	} {
		if got := Reason(err); got != unix.EIO.Error() {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// Without /proc a file without a name could not be named.
func TestFilesHaveNamesWithoutProc(t *testing.T) {
	before := hasProc
	hasProc = func() bool { return false }
	t.Cleanup(func() { hasProc = before })
	dir, err := OS.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := dir.CreateUnnamed("file", 0o600, false); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a file: %v", err)
	}
}
