package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

const toStdout = "-"

// writeManifest lists files and all that is below directories. Nothing is written unless all of them could be read.
func (v verifier) writeManifest(ctx context.Context, manifest string, paths []string) error {
	if err := v.checkPlace(manifest); err != nil {
		return err
	}
	files, err := v.gather(ctx, manifest, paths)
	if err != nil {
		return err
	}
	var text strings.Builder
	var total int64
	for _, path := range files {
		sum, size, err := v.digestOf(ctx, v.settings.Digest, path)
		if err != nil {
			return err
		}
		name, err := nameIn(manifest, path)
		if err != nil {
			return err
		}
		text.WriteString(digest.Entry{Sum: sum, Path: name}.String() + "\n")
		total += size
	}
	return v.deliver(manifest, text.String(), len(files), total)
}

// checkPlace finds now what would be a pity to find after hours of reading.
func (v verifier) checkPlace(manifest string) error {
	if manifest == toStdout {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(manifest)); err != nil {
		return cannotWrite(manifest, err)
	}
	if _, err := os.Lstat(manifest); err == nil && !v.settings.Overwrite {
		return existsAlready(manifest)
	}
	return nil
}

func existsAlready(manifest string) error {
	return &dmaxfer.Error{
		Kind: dmaxfer.ErrTarget, Cause: manifest + " exists", Next: "remove it, or allow its replacement with --overwrite",
	}
}

// gather finds the files, which are never none.
func (v verifier) gather(ctx context.Context, manifest string, paths []string) (files []string, err error) {
	for _, path := range paths {
		if !isDirectory(path) {
			files = append(files, path) // whether it can be read is found when it is
			continue
		}
		below, err := v.gatherBelow(ctx, manifest, path)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	if len(files) == 0 {
		return nil, &dmaxfer.Error{Kind: dmaxfer.ErrSource, Cause: "there is no file in " + strings.Join(paths, ", "), Next: "name files"}
	}
	return files, nil
}

// gatherBelow leaves out the manifest itself, should it be replaced, and what is no regular file, with a word about it.
func (v verifier) gatherBelow(ctx context.Context, manifest, directory string) (files []string, err error) {
	replaced, _ := os.Lstat(manifest)
	err = filepath.WalkDir(directory+"/", func(path string, entry fs.DirEntry, err error) error { // a link to a directory is followed
		if err != nil {
			return cannotRead(path, err, "check the path and its permissions")
		}
		if ctx.Err() != nil || entry.IsDir() {
			return context.Cause(ctx)
		}
		if !entry.Type().IsRegular() {
			v.log.Warn().Str("path", path).Msg("left out of the manifest: not a regular file")
			return nil
		}
		if info, err := entry.Info(); err == nil && replaced != nil && os.SameFile(info, replaced) {
			return nil
		}
		files = append(files, path)
		return nil
	})
	return files, err
}

// nameIn is a file's path relative to the directory of the manifest, or the current one for a manifest on stdout.
func nameIn(manifest, path string) (string, error) {
	directory := filepath.Dir(manifest)
	name, err := relative(directory, path, filepath.Abs)
	if err == nil && !filepath.IsLocal(name) {
		// A way that leads up is right only between the places themselves, not between links to them.
		name, err = relative(directory, path, placeOf)
	}
	if err != nil {
		return "", fmt.Errorf("name %s in the manifest: %w", path, err)
	}
	return name, nil
}

// placeOf is where a path leads, all links followed.
func placeOf(path string) (string, error) {
	place, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(place)
}

// relative is the way from a directory to a file, which may be a link itself.
func relative(directory, path string, resolve func(string) (string, error)) (string, error) {
	from, err := resolve(directory)
	if err != nil {
		return "", err
	}
	to, err := resolve(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	way, err := filepath.Rel(from, to)
	return filepath.Join(way, filepath.Base(path)), err
}

func (v verifier) deliver(manifest, text string, count int, total int64) error {
	if manifest == toStdout {
		if _, err := io.WriteString(v.streams.stdout, text); err != nil {
			return fmt.Errorf("print the manifest: %w", err)
		}
		return nil
	}
	if err := replaceFile(manifest, text, v.settings.Overwrite); err != nil {
		return err
	}
	if v.settings.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(v.streams.stderr, "ok    wrote %s  %s, %s\n",
		escapeUnprintable(manifest), english.Plural(count, "file", ""), humanize.IBytes(uint64(total)))
	return err
}

// replaceFile makes a file whose name holds the old text or the new, never a part, and which is on disk afterwards.
func replaceFile(path, text string, overwrite bool) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".dma-copy-"+rand.Text()[:10])
	err := writeDurably(temporary, text)
	if err == nil {
		err = giveName(temporary, path, overwrite)
	}
	if err == nil {
		return flushDirectory(path)
	}
	_ = os.Remove(temporary)
	if errors.Is(err, os.ErrExist) {
		return existsAlready(path)
	}
	return cannotWrite(path, err)
}

func cannotWrite(path string, err error) error {
	return &dmaxfer.Error{
		Kind: dmaxfer.ErrTarget, Cause: fmt.Sprintf("cannot write %s: %v", path, withoutPath(err)), Next: "choose another place", Err: err,
	}
}

func writeDurably(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// giveName replaces nothing unless it may.
func giveName(temporary, path string, overwrite bool) error {
	if overwrite {
		return os.Rename(temporary, path)
	}
	err := unix.Renameat2(unix.AT_FDCWD, temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system does not know that rename, but may know links, which never replace anything.
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return os.Remove(temporary)
}

func flushDirectory(path string) error {
	directory, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(directory.Sync(), directory.Close())
	}
	if err != nil {
		return cannotWrite(path, err)
	}
	return nil
}
