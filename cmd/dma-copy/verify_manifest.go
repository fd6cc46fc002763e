package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// maxManifestSize bounds what is read of a file that may not be a manifest at all.
const maxManifestSize = 256 << 20

// expected is a file and what it should be.
type expected struct {
	path string
	sum  digest.Sum // of digest.None if the manifest does not say
}

// checkListed checks what the manifest lists below a directory, or beside the manifest if none is given.
func (v verifier) checkListed(ctx context.Context, manifest, directory string) error {
	entries, err := loadManifest(manifest)
	if err != nil {
		return err
	}
	files := make([]expected, len(entries))
	for i, entry := range entries {
		if directory != "" && !filepath.IsLocal(entry.Path) {
			return usagef("%s lists %s, which is not below %s: leave the directory out", manifest, entry.Path, directory)
		}
		files[i] = expected{path: locate(entry.Path, manifest, directory), sum: entry.Sum}
	}
	return v.checkFiles(ctx, manifest, files)
}

func locate(path, manifest, directory string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case directory != "":
		return filepath.Join(directory, path)
	default:
		return filepath.Join(filepath.Dir(manifest), path)
	}
}

// checkNamed checks the named files only.
func (v verifier) checkNamed(ctx context.Context, manifest string, paths []string) error {
	entries, err := loadManifest(manifest)
	if err != nil {
		return err
	}
	files := make([]expected, len(paths))
	for i, path := range paths {
		sum, err := lookUp(path, manifest, entries)
		if err != nil {
			return err
		}
		files[i] = expected{path: path, sum: sum}
	}
	return v.checkFiles(ctx, manifest, files)
}

// lookUp finds what a manifest says of a file: by its place, else by its name, as of a file that was copied elsewhere. A
// name that stands there twice with different digests is nobody's.
func lookUp(path, manifest string, entries []digest.Entry) (found digest.Sum, err error) {
	wanted, err := filepath.Abs(path)
	if err != nil {
		return digest.Sum{}, fmt.Errorf("find %s: %w", path, err)
	}
	for _, entry := range entries {
		if listed, err := filepath.Abs(locate(entry.Path, manifest, "")); err == nil && listed == wanted {
			return entry.Sum, nil
		}
		if filepath.Base(entry.Path) != filepath.Base(wanted) {
			continue
		}
		if found != (digest.Sum{}) && found != entry.Sum {
			err = usagef("%s lists several files named %s: give the directory, as in dma-copy verify DIR MANIFEST",
				manifest, filepath.Base(wanted))
		}
		found = entry.Sum
	}
	return found, err
}

// loadManifest reads a manifest, which must list something.
func loadManifest(path string) ([]digest.Entry, error) {
	text, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	entries, err := digest.ParseManifest(text)
	if err != nil {
		return nil, usagef("%s is not a manifest: %w; name one, or a second file to compare it with", path, err)
	}
	if len(entries) == 0 {
		return nil, usagef("%s lists no file: write a manifest with dma-copy verify --write", path)
	}
	return entries, nil
}

func readManifest(path string) (string, error) {
	file, err := openToRead(path)
	if err != nil {
		return "", err
	}
	defer file.close()
	text, err := io.ReadAll(io.LimitReader(file.file, maxManifestSize+1))
	if err != nil {
		return "", file.failed(err)
	}
	if len(text) > maxManifestSize {
		return "", usagef("%s is not a manifest: it is larger than %d bytes; name one, or a second file to compare it with", path, maxManifestSize)
	}
	return string(text), nil
}

// tally counts what became of the files.
type tally struct{ fine, different, unreadable int }

// checkFiles reads all of them, whatever is found, unless the run is ended.
func (v verifier) checkFiles(ctx context.Context, manifest string, files []expected) error {
	var count tally
	for _, file := range files {
		if err := v.checkFile(ctx, file, &count); err != nil {
			return err
		}
	}
	return count.outcome(manifest, len(files))
}

func (v verifier) checkFile(ctx context.Context, file expected, count *tally) error {
	if file.sum.Algorithm() == digest.None {
		count.unreadable++
		return v.tell(false, "%s: the manifest does not list it", file.path)
	}
	got, _, err := v.digestOf(ctx, file.sum.Algorithm(), file.path)
	if failed, is := errors.AsType[*dmaxfer.Error](err); is {
		count.unreadable++
		return v.tell(false, "%s", failed.Cause)
	}
	if err != nil {
		return err
	}
	if got == file.sum {
		count.fine++
		return v.tell(true, "%s  %s", file.path, got)
	}
	count.different++
	return v.tell(false, "%s: it has %s, and should have %s", file.path, got, file.sum)
}

// outcome is a failure of its own kind where files failed in part. Where all did, a mismatch is the worse news.
func (t tally) outcome(manifest string, of int) error {
	kind := dmaxfer.ErrSource
	switch {
	case t.fine == of:
		return nil
	case t.fine > 0:
		kind = errSomeFailed
	case t.different > 0:
		kind = errDigest
	}
	return &dmaxfer.Error{
		Kind:  kind,
		Cause: fmt.Sprintf("%d of %d files are not as %s says (%d differ, %d could not be checked)", of-t.fine, of, manifest, t.different, t.unreadable),
		Next:  "the lines with FAIL say which",
	}
}
