package verify

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/output"
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

// paths is a set of paths, which keeps their hashes with a random seed. In a set of ten million paths another path
// seems to be with a probability below 1e-12.
type paths struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newPaths(number int) *paths {
	return &paths{maphash.MakeSeed(), make(map[uint64]struct{}, number)}
}

func (p *paths) add(name string) { p.hashes[p.hash(name)] = struct{}{} }

func (p *paths) has(name string) bool {
	_, found := p.hashes[p.hash(name)]
	return found
}

// hash leaves out what does not change the meaning of a path, such as "./".
func (p *paths) hash(name string) uint64 { return maphash.String(p.seed, path.Clean(name)) }

// reportExtra prints and counts the regular files below a directory that a manifest does not list.
func (v verifier) reportExtra(ctx context.Context, manifest, directory string, known *paths, count *tally) error {
	walk, err := openWalk(directory, manifest, nil)
	if err != nil {
		return err
	}
	defer walk.close()
	for {
		name, err := walk.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case known.has(name):
			continue
		}
		count.extra++
		path := disk.Join(directory, name)
		r := result{FileName: output.NameInEvent(path), Verdict: unlisted}
		if err := v.printResult(r, "%s: the manifest does not list it", path); err != nil {
			return err
		}
	}
}
