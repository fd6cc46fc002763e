package verify

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
)

const toStdout = "-"

// writeManifest writes the digests of files, and of all files below directories. Nothing is written unless all of them
// could be read.
func (v verifier) writeManifest(ctx context.Context, manifest string, paths []string) error {
	if err := v.checkTarget(manifest); err != nil {
		return err
	}
	files, err := v.gather(ctx, manifest, paths)
	if err != nil {
		return err
	}
	var text strings.Builder
	var total int64
	for _, path := range files {
		file, err := fileio.Open(path)
		if err != nil {
			return err
		}
		sum, size, err := v.digestOf(ctx, v.settings.Digest, file)
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
	return v.deliver(ctx, manifest, text.String(), len(files), total)
}

// checkTarget reports early what would otherwise fail after hours of reading.
func (v verifier) checkTarget(manifest string) error {
	if manifest == toStdout {
		return nil
	}
	return v.target(manifest).Check()
}

func (v verifier) target(manifest string) fileio.Replacement {
	return fileio.Replacement{Path: manifest, Overwrite: v.settings.Overwrite, Hint: "name another file"}
}

// gather returns the files to list, at least one.
func (v verifier) gather(ctx context.Context, manifest string, paths []string) (files []string, err error) {
	for _, path := range paths {
		if !isDirectory(path) {
			files = append(files, path) // opened later, where errors are reported
			continue
		}
		below, err := v.gatherBelow(ctx, manifest, path)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	if len(files) == 0 {
		cause := "there is no file in " + quote.Bare(strings.Join(paths, ", "))
		return nil, &job.Error{Kind: job.ErrSource, Cause: cause, Next: "name files"}
	}
	return files, nil
}

// gatherBelow returns the files below a directory. It leaves out the manifest itself, if that is replaced, and logs
// and leaves out what is not a regular file.
func (v verifier) gatherBelow(ctx context.Context, manifest, directory string) (files []string, err error) {
	replaced, _ := os.Stat(manifest)
	tree := strings.TrimRight(directory, "/") + "/" // a symlink to a directory is followed
	err = fs.WalkDir(os.DirFS(tree), ".", func(name string, entry fs.DirEntry, err error) error {
		path := tree + name
		if err != nil {
			return fileio.CannotRead(path, err, "check the path and its permissions")
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

// nameIn returns a file's path relative to the directory of the manifest, or to the current one for a manifest on
// stdout.
func nameIn(manifest, path string) (string, error) {
	directory := directoryOf(manifest)
	name, err := relative(directory, path, absolute)
	if err == nil && !filepath.IsLocal(name) {
		// A path with .. is correct between the directories themselves only, not between symlinks to them.
		name, err = relative(directory, path, resolved)
	}
	if err != nil {
		return "", fmt.Errorf("name %s in the manifest: %w", quote.Bare(path), err)
	}
	return name, nil
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

// relative returns the path from a directory to a file, which may be a symlink itself.
func relative(directory, path string, resolve func(string) (string, error)) (string, error) {
	from, err := resolve(directory)
	if err != nil {
		return "", err
	}
	parent, name := disk.Split(path)
	to, err := resolve(parent)
	if err != nil {
		return "", err
	}
	way, err := filepath.Rel(from, to)
	return disk.Join(way, name), err
}

func (v verifier) deliver(ctx context.Context, manifest, text string, count int, total int64) error {
	if manifest == toStdout {
		if _, err := io.WriteString(v.stdout, text); err != nil {
			return fmt.Errorf("print the manifest: %w", err)
		}
		return nil
	}
	if err := v.target(manifest).Write(ctx, []byte(text)); err != nil {
		return err
	}
	if v.settings.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(v.stderr, "ok    wrote %s  %s, %s\n",
		quote.Printable(manifest), english.Plural(count, "file", ""), humanize.IBytes(uint64(total)))
	return err
}
