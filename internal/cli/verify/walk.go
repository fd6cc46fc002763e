package verify

import (
	"cmp"
	"errors"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// walk lists the regular files below a directory, sorted by the components of their paths. It does not follow symlinks.
type walk struct {
	directory string
	entries   *tree.Walk
	manifest  disk.Identity     // is not listed
	leftOut   func(path string) // is called for what is neither a file nor a directory; nil: nothing is called
}

// openWalk returns the walk through a directory, which may be named by a symlink.
func openWalk(directory, manifest string, leftOut func(path string)) (*walk, error) {
	w := &walk{directory: directory, leftOut: leftOut}
	if info, err := disk.OS.Stat(manifest); err == nil { // it may be new
		w.manifest = info.Identity
	}
	var err error
	w.entries, err = tree.Open(disk.OS, cmp.Or(strings.TrimRight(directory, "/"), "/"), tree.Options{Warn: w.warn})
	return w, err
}

func (w *walk) close() { w.entries.Close() }

// next returns the path of the next file below the directory, or io.EOF. A directory that cannot be read is an error.
func (w *walk) next() (string, error) {
	for {
		entry, err := w.entries.Next()
		if err != nil {
			return "", err
		}
		entry.Release() // the file is opened by its path
		switch {
		case entry.Err != nil:
			return "", w.explained(&entry)
		case entry.Kind == wire.EntrySymlink:
			w.warn(entry.Path(), "")
		case entry.Kind == wire.EntryFile && !w.isOurs(&entry):
			return entry.Path(), nil
		}
	}
}

// explained returns the error of an entry with the whole path, and what to do here.
func (w *walk) explained(entry *tree.Entry) error {
	failed, is := errors.AsType[*job.Error](entry.Err)
	if !is || failed.Err == nil || errors.Is(failed, job.ErrSourceChanged) {
		return entry.Err
	}
	return fileio.CannotRead(disk.Join(w.directory, entry.Path()), failed.Err, "check the path and its permissions")
}

// isOurs reports whether a file is the manifest or what an interrupted copy has left.
func (w *walk) isOurs(entry *tree.Entry) bool {
	return entry.Info.SameFile(w.manifest) || disk.IsLeftover(entry.Name)
}

func (w *walk) warn(path, _ string) {
	if w.leftOut != nil {
		w.leftOut(disk.Join(w.directory, path))
	}
}
