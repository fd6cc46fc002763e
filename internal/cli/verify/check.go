package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// expected is a file and its expected digest.
type expected struct {
	path string // with its directory
	open opener
	sum  digest.Sum // its algorithm is digest.None if the manifest has none
}

// checkListed checks the files of a manifest in a directory, by default the directory of the manifest. The manifest is
// read twice: nothing is checked unless all of it is valid.
func (v verifier) checkListed(ctx context.Context, manifest, directory string) error {
	directory = cmp.Or(directory, directoryOf(manifest))
	opened, err := openManifest(manifest)
	if err != nil {
		return err
	}
	defer opened.close()
	var root *os.Root
	if !v.settings.AllowOutside {
		if root, err = os.OpenRoot(directory); err != nil {
			return fileio.CannotRead(directory, err, "check the path and its permissions")
		}
		defer root.Close()
	}
	number, err := opened.validate(directory, root != nil)
	if err != nil {
		return err
	}
	v.meter.filesTotal.Store(int64(number))
	var known *paths
	if v.settings.Extra {
		known = newPaths(number)
	}
	next := func() (expected, error) {
		entry, err := opened.next()
		if err != nil {
			return expected{}, err
		}
		if known != nil {
			known.add(entry.Path)
		}
		path := disk.Join(directory, entry.Path)
		if root == nil {
			return expected{path, openerOf(path), entry.Sum}, nil
		}
		return expected{path, openerWithin(root, entry.Path), entry.Sum}, nil
	}
	var count tally
	if err := v.checkFiles(ctx, next, &count); err != nil {
		return err
	}
	if known != nil {
		if err := v.reportExtra(ctx, manifest, directory, known, &count); err != nil {
			return err
		}
	}
	return count.outcome(manifest)
}

// checkNamed checks the named files only.
func (v verifier) checkNamed(ctx context.Context, manifest string, paths []string) error {
	opened, err := openManifest(manifest)
	if err != nil {
		return err
	}
	defer opened.close()
	files, err := lookUp(opened, paths)
	if err != nil {
		return err
	}
	v.meter.filesTotal.Store(int64(len(files)))
	var count tally
	if err := v.checkFiles(ctx, each(files), &count); err != nil {
		return err
	}
	return count.outcome(manifest)
}

// lookUp returns the digests of files in a manifest: by directory and name, else by the name alone, for a file that was
// copied elsewhere. A name that is listed twice with different digests is an error.
func lookUp(manifest *openedManifest, paths []string) ([]expected, error) {
	files, byName := make([]expected, len(paths)), map[string][]int{}
	for i, path := range paths {
		files[i] = expected{path: path, open: openerOf(path)}
		_, name := disk.Split(path)
		byName[name] = append(byName[name], i)
	}
	exact, ambiguous := make([]bool, len(paths)), make([]bool, len(paths))
	for {
		entry, err := manifest.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		_, name := disk.Split(entry.Path)
		for _, i := range byName[name] {
			switch file := &files[i]; {
			case exact[i]:
			case sameDirectory(file.path, disk.Join(directoryOf(manifest.path), entry.Path)):
				file.sum, exact[i] = entry.Sum, true
			default:
				ambiguous[i] = ambiguous[i] || file.sum != (digest.Sum{}) && file.sum != entry.Sum
				file.sum = entry.Sum
			}
		}
	}
	for i, file := range files {
		if ambiguous[i] && !exact[i] {
			_, name := disk.Split(file.path)
			return nil, exit.Usagef(
				"%s lists several files named %s: give the directory, as in dma-copy verify DIR MANIFEST",
				quote.Bare(manifest.path), quote.Bare(name))
		}
	}
	return files, nil
}

// sameDirectory reports whether two paths are in one directory.
func sameDirectory(a, b string) bool {
	inA, _ := disk.Split(a)
	inB, _ := disk.Split(b)
	infoA, errA := os.Stat(inA)
	infoB, errB := os.Stat(inB)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// openedManifest reads a manifest.
type openedManifest struct {
	path    string
	file    *fileio.Source
	entries *digest.Manifest
	number  int // of entries that were read
}

func openManifest(path string) (*openedManifest, error) {
	file, err := fileio.Open(path)
	if err != nil {
		return nil, err
	}
	return &openedManifest{path: path, file: file, entries: digest.ReadManifest(file.File)}, nil
}

func (m *openedManifest) close() { m.file.Close() }

// next returns the next entry, or io.EOF. A manifest without any is an error.
func (m *openedManifest) next() (digest.Entry, error) {
	entry, err := m.entries.Next()
	_, malformed := errors.AsType[*digest.LineError](err)
	switch {
	case err == nil:
		m.number++
	case malformed:
		err = exit.Usagef("%s is not a manifest: %w; name one, or a second file to compare it with",
			quote.Bare(m.path), err)
	case err != io.EOF:
		err = m.file.Failed(err)
	case m.number == 0:
		err = exit.Usagef("%s lists no file: write a manifest with dma-copy verify --write", quote.Bare(m.path))
	}
	return entry, err
}

// validate reads all entries and returns their number, and begins again. With local set, they must not lead out of the
// directory.
func (m *openedManifest) validate(directory string, local bool) (number int, err error) {
	for {
		entry, err := m.next()
		if err == io.EOF {
			if _, err := m.file.File.Seek(0, io.SeekStart); err != nil {
				return 0, m.file.Failed(err)
			}
			m.entries = digest.ReadManifest(m.file.File)
			return m.number, nil
		}
		if err != nil {
			return 0, err
		}
		if local && !filepath.IsLocal(entry.Path) {
			return 0, exit.Usagef(
				"%s lists %s, which is outside of %s: allow that with --allow-outside if you trust the manifest",
				quote.Bare(m.path), quote.Bare(entry.Path), quote.Bare(withoutLastSlash(directory)))
		}
	}
}

func withoutLastSlash(directory string) string {
	if directory == "/" {
		return directory
	}
	return strings.TrimSuffix(directory, "/")
}

// checkFiles checks all files, also after mismatches, until ctx ends.
func (v verifier) checkFiles(ctx context.Context, next func() (expected, error), count *tally) error {
	read := func(ctx context.Context, file expected) content {
		if file.sum.Algorithm() == digest.None {
			return content{}
		}
		return v.read(ctx, file.sum.Algorithm(), file.open)
	}
	return inOrder(ctx, next, read, func(file expected, found content) error {
		return v.judge(file, found, count)
	})
}

// judge prints and counts the result of a file. It returns an error if the check cannot go on.
func (v verifier) judge(file expected, found content, count *tally) error {
	failed, explained := errors.AsType[*job.Error](found.err)
	r := result{FileName: output.NameInEvent(file.path)}
	switch {
	case file.sum.Algorithm() == digest.None:
		count.unreadable++
		r.Verdict = unlisted
		return v.printResult(r, "%s: the manifest does not list it", file.path)
	case errors.Is(found.err, fs.ErrNotExist):
		count.missing++
		r.Verdict = isMissing
		return v.printResult(r, "%s: missing", file.path)
	case explained:
		count.unreadable++
		r.Verdict, r.Message = unreadable, quote.Printable(failed.Cause)
		return v.printResult(r, "%s", failed.Cause)
	case found.err != nil:
		return found.err
	}
	r.Digest, r.Expected = found.sum.String(), file.sum.String()
	if found.sum == file.sum {
		count.fine++
		r.Verdict = matches
		return v.printResult(r, "%s  %s", file.path, found.sum)
	}
	count.different++
	r.Verdict = differs
	return v.printResult(r, "%s: digest mismatch: got %s, expected %s", file.path, found.sum, file.sum)
}

// tally counts the results.
type tally struct{ fine, different, missing, unreadable, extra int }

// outcome returns an error if files failed. Its exit code depends on whether all failed and, if so, on whether there
// was a mismatch.
func (t tally) outcome(manifest string) error {
	code := exit.Source
	failed := t.different + t.missing + t.unreadable + t.extra
	switch {
	case failed == 0:
		return nil
	case t.fine > 0:
		code = exit.SomeFailed
	case t.different > 0:
		code = exit.Digest
	}
	reasons := fmt.Sprintf("%d differ, %d missing, %d could not be checked", t.different, t.missing, t.unreadable)
	if t.extra > 0 {
		reasons += fmt.Sprintf(", %d not listed", t.extra)
	}
	next := "see the lines with FAIL"
	if t.missing > 0 && t.fine+t.different+t.unreadable == 0 {
		next += "; if the manifest has the name of another directory in its paths, write it with --relative-to"
	}
	return exit.Errorf(code, next, "%d of %d files do not match %s (%s)",
		failed, failed+t.fine, quote.Bare(manifest), reasons)
}
