package dmaxfer

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

const diskSize = 1 << 20

// smallDisk is a directory that holds no file larger than diskSize: a file system of that size where we may mount one,
// and otherwise the process's own limit.
func smallDisk(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=1m"); err == nil {
		t.Cleanup(func() {
			if err := unix.Unmount(directory, 0); err != nil {
				t.Errorf("unmounting %s: %v", directory, err)
			}
		})
		return directory
	}
	limitFiles(t)
	return directory
}

func limitFiles(t *testing.T) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(unix.SIGXFSZ) })
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: diskSize, Max: before.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) })
}

func TestFullDisk(t *testing.T) {
	for name, fill := range map[string]func(*target) error{
		"allocating":                  func(made *target) error { return made.allocate(t.Context(), diskSize+1) },
		"allocating more than can be": func(made *target) error { return made.allocate(t.Context(), maxFileSize) },
		"filling":                     func(made *target) error { return made.cannotHold(2*diskSize, made.fillWithZeros(0, 2*diskSize)) },
		"writing":                     func(made *target) error { return made.writeAt(make([]byte, 2*diskSize), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			directory := smallDisk(t)
			made, err := createTarget(filepath.Join(directory, "file"), false)
			must(t, err)
			defer made.abort()
			err = fill(made)
			mustFail(t, err, ErrTarget)
			if !isFull(err) {
				t.Errorf("%v is not about room", err)
			}
			made.abort()
			mustHold(t, directory)
		})
	}
}

func TestFreeSpace(t *testing.T) {
	file, err := os.Open(t.TempDir())
	must(t, err)
	defer file.Close()
	if free, known := freeSpace(file); !known || free == 0 {
		t.Errorf("%d bytes are free here, known %t", free, known)
	}
}
