package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

const toStdout = "-"

// listing writes one manifest.
type listing struct {
	verifier
	manifest string
	to       io.Writer
	count    int
	total    int64 // bytes
}

// writeManifest writes the digests of files, and of all files below directories. A file gets its name only if all of
// them could be read.
func (v verifier) writeManifest(ctx context.Context, manifest string, paths []string) error {
	if manifest == toStdout {
		buffered := bufio.NewWriter(v.stdout)
		l := listing{verifier: v, manifest: manifest, to: buffered}
		if err := l.list(ctx, paths); err != nil {
			return err
		}
		return cannotPrint(buffered.Flush())
	}
	file, err := fileio.Create(manifest, v.settings.Overwrite)
	if err != nil {
		return err
	}
	defer file.Discard()
	l := listing{verifier: v, manifest: manifest, to: file}
	if err := l.list(ctx, paths); err != nil {
		return err
	}
	if err := file.Commit(ctx); err != nil || v.settings.Quiet {
		return err
	}
	if v.settings.Output == option.OutputJSON {
		header := lineHeader{linesVersion, "manifest"}
		return writeLine(v.stdout, manifestLine{header, output.NameInEvent(manifest), l.count, l.total})
	}
	_, err = fmt.Fprintf(v.stderr, "ok    wrote %s  %s, %s\n",
		quote.Printable(manifest), quantity.Count(l.count, "file"), quantity.Bytes(uint64(l.total)))
	return err
}

func cannotPrint(err error) error {
	if err != nil {
		return fmt.Errorf("print the manifest: %w", err)
	}
	return nil
}

// list writes the lines of all files, at least one.
func (l *listing) list(ctx context.Context, paths []string) error {
	for rest := paths; len(rest) > 0; {
		list, n := l.listBelow, 1
		if !isDirectory(rest[0]) {
			list, n = l.listNamed, slices.IndexFunc(rest, isDirectory)
		}
		if n < 0 {
			n = len(rest)
		}
		if err := list(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if l.count == 0 {
		cause := "there is no file in " + quote.Bare(strings.Join(paths, ", "))
		return &job.Error{Kind: job.ErrSource, Cause: cause, Next: "name files"}
	}
	return nil
}

// listNamed writes the lines of files.
func (l *listing) listNamed(ctx context.Context, paths []string) error {
	next := each(paths)
	return l.addAll(ctx, func() (listed, error) {
		path, err := next()
		if err != nil {
			return listed{}, err
		}
		name, err := l.nameOf(path)
		return listed{name, openerOf(path)}, err
	})
}

// listBelow writes the lines of the files below one directory.
func (l *listing) listBelow(ctx context.Context, paths []string) error {
	directory := paths[0]
	prefix, err := relative(l.base(), directory)
	if err != nil {
		return cannotName(directory, err)
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return fileio.CannotRead(directory, err, "check the path and its permissions")
	}
	defer root.Close()
	walk, err := openWalk(directory, l.manifest, l.logLeftOut)
	if err != nil {
		return err
	}
	defer walk.close()
	return l.addAll(ctx, func() (listed, error) {
		path, err := walk.next()
		return listed{disk.Join(prefix, path), openerWithin(root, path)}, err
	})
}

// listed is a file to list.
type listed struct {
	name string // in the manifest
	open opener
}

// addAll writes the lines of all files that next returns.
func (l *listing) addAll(ctx context.Context, next func() (listed, error)) error {
	read := func(ctx context.Context, file listed) content { return l.read(ctx, l.settings.Digest, file.open) }
	return inOrder(ctx, next, read, l.add)
}

// add writes the line of a file.
func (l *listing) add(file listed, found content) error {
	if found.err != nil {
		return found.err
	}
	l.count++
	l.total += found.size
	_, err := io.WriteString(l.to, digest.Entry{Sum: found.sum, Path: file.name}.String()+"\n")
	if _, explained := errors.AsType[*job.Error](err); explained {
		return err
	}
	return cannotPrint(err)
}

// logLeftOut logs what is not listed.
func (l *listing) logLeftOut(path string) {
	l.log.Warn().Str("path", path).Msg("left out of the manifest: not a regular file")
}

// base returns the directory that names in the manifest are relative to.
func (l *listing) base() string {
	if l.settings.RelativeTo != "" {
		return l.settings.RelativeTo
	}
	return directoryOf(l.manifest) // the current one for stdout
}

// nameOf returns a file's path relative to the base.
func (l *listing) nameOf(path string) (string, error) {
	parent, name := disk.Split(path)
	way, err := relative(l.base(), parent)
	if err != nil {
		return "", cannotName(path, err)
	}
	return disk.Join(way, name), nil
}

func cannotName(path string, err error) error {
	return fmt.Errorf("name %s in the manifest: %w", quote.Bare(path), err)
}

// relative returns the path from one directory to another.
func relative(from, to string) (string, error) {
	way, err := relativeBy(absolute, from, to)
	if err == nil && !filepath.IsLocal(way) {
		// A path with .. is correct between the directories themselves only, not between symlinks to them.
		way, err = relativeBy(resolved, from, to)
	}
	return way, err
}

func relativeBy(resolve func(string) (string, error), from, to string) (string, error) {
	from, err := resolve(from)
	if err != nil {
		return "", err
	}
	to, err = resolve(to)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// absolute keeps symlinks, unless a ".." follows them: then only the kernel knows the directory.
func absolute(path string) (string, error) {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return resolved(path)
	}
	return filepath.Abs(path)
}

// resolved follows all symlinks.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}
