package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// maxManifestSize bounds what is read of a file that may not be a manifest, in bytes.
const maxManifestSize = 256 << 20

// expected is a file and its expected digest.
type expected struct {
	path   string
	within *os.Root   // the directory that path must not leave; nil: any
	sum    digest.Sum // its algorithm is digest.None if the manifest has none
}

func (e expected) open() (*fileio.Source, error) {
	if e.within == nil {
		return fileio.Open(e.path)
	}
	return fileio.OpenWithin(e.within, e.path)
}

// checkListed checks the files of a manifest in a directory, by default the directory of the manifest.
func (v verifier) checkListed(ctx context.Context, manifest, directory string) error {
	if directory == "" {
		directory = directoryOf(manifest)
	}
	entries, err := loadManifest(manifest)
	if err != nil {
		return err
	}
	if v.settings.AllowOutside {
		return v.checkFiles(ctx, manifest, anywhere(entries, directory))
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return fileio.CannotRead(directory, err, "check the path and its permissions")
	}
	defer root.Close()
	files := make([]expected, len(entries))
	for i, entry := range entries {
		if !filepath.IsLocal(entry.Path) {
			return exit.Usagef(
				"%s lists %s, which is outside of %s: allow that with --allow-outside if you trust the manifest",
				quote.Bare(manifest), quote.Bare(entry.Path), quote.Bare(withoutLastSlash(directory)))
		}
		files[i] = expected{path: entry.Path, within: root, sum: entry.Sum}
	}
	return v.checkFiles(ctx, manifest, files)
}

func withoutLastSlash(directory string) string {
	if directory == "/" {
		return directory
	}
	return strings.TrimSuffix(directory, "/")
}

// anywhere returns the entries of a manifest that may lead out of the directory.
func anywhere(entries []digest.Entry, directory string) []expected {
	files := make([]expected, len(entries))
	for i, entry := range entries {
		files[i] = expected{path: disk.Join(directory, entry.Path), sum: entry.Sum}
	}
	return files
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

// lookUp returns the digest of a file in a manifest: by directory and name, else by the name alone, for a file that
// was copied elsewhere. A name that is listed twice with different digests is an error.
func lookUp(path, manifest string, entries []digest.Entry) (found digest.Sum, err error) {
	_, wanted := disk.Split(path)
	for _, entry := range entries {
		if _, listed := disk.Split(entry.Path); listed != wanted {
			continue
		}
		if sameDirectory(path, disk.Join(directoryOf(manifest), entry.Path)) {
			return entry.Sum, nil
		}
		if found != (digest.Sum{}) && found != entry.Sum {
			err = exit.Usagef("%s lists several files named %s: give the directory, as in dma-copy verify DIR MANIFEST",
				quote.Bare(manifest), quote.Bare(wanted))
		}
		found = entry.Sum
	}
	return found, err
}

// sameDirectory reports whether two paths are in one directory.
func sameDirectory(a, b string) bool {
	inA, _ := disk.Split(a)
	inB, _ := disk.Split(b)
	infoA, errA := os.Stat(inA)
	infoB, errB := os.Stat(inB)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// loadManifest reads a manifest, which must list at least one file.
func loadManifest(path string) ([]digest.Entry, error) {
	text, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	entries, err := digest.ParseManifest(text)
	if err != nil {
		return nil, exit.Usagef("%s is not a manifest: %w; name one, or a second file to compare it with",
			quote.Bare(path), err)
	}
	if len(entries) == 0 {
		return nil, exit.Usagef("%s lists no file: write a manifest with dma-copy verify --write", quote.Bare(path))
	}
	return entries, nil
}

func readManifest(path string) (string, error) {
	file, err := fileio.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := fileio.ReadAtMost(file.File, maxManifestSize)
	if errors.Is(err, fileio.ErrTooLarge) {
		return "", exit.Usagef(
			"%s is not a manifest: it is larger than %d bytes; name one, or a second file to compare it with",
			quote.Bare(path), maxManifestSize)
	}
	if err != nil {
		return "", file.Failed(err)
	}
	return string(text), nil
}

// tally counts the results.
type tally struct{ fine, different, unreadable int }

// checkFiles checks all files, also after mismatches, until ctx ends.
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
		return v.printResult(false, "%s: the manifest does not list it", file.path)
	}
	path, got, err := v.read(ctx, file)
	if failed, is := errors.AsType[*job.Error](err); is {
		count.unreadable++
		return v.printResult(false, "%s", failed.Cause)
	}
	if err != nil {
		return err
	}
	if got == file.sum {
		count.fine++
		return v.printResult(true, "%s  %s", path, got)
	}
	count.different++
	return v.printResult(false, "%s: digest mismatch: got %s, expected %s", path, got, file.sum)
}

// read returns the path of a file with its directory, and its digest.
func (v verifier) read(ctx context.Context, file expected) (string, digest.Sum, error) {
	opened, err := file.open()
	if err != nil {
		return "", digest.Sum{}, err
	}
	sum, _, err := v.digestOf(ctx, file.sum.Algorithm(), opened)
	return opened.Path, sum, err
}

// outcome returns an error if files failed. Its exit code depends on whether all failed and, if so, on whether there
// was a mismatch.
func (t tally) outcome(manifest string, of int) error {
	code := exit.Source
	switch {
	case t.fine == of:
		return nil
	case t.fine > 0:
		code = exit.SomeFailed
	case t.different > 0:
		code = exit.Digest
	}
	return exit.Errorf(code, "see the lines with FAIL",
		"%d of %d files do not match %s (%d differ, %d could not be checked)",
		of-t.fine, of, quote.Bare(manifest), t.different, t.unreadable)
}
