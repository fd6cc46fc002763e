// Package verify compares files by digest as the disk has them: two files, or files and a manifest, which it also
// writes.
//
// It needs no device and copies nothing. Digests and the format of manifests are defined by package digest.
package verify

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Run carries out the command. It prints results to stdout, and which manifest it has written to stderr. Each signal of
// asked, which may be nil, is answered with the progress.
func Run(
	ctx context.Context, stdout, stderr io.Writer, s Settings, args []string, asked <-chan os.Signal,
	log zerolog.Logger,
) error {
	named := append([]string{s.Manifest, s.NewManifest, s.RelativeTo}, args...)
	if err := option.RefuseOtherMachines(named); err != nil {
		return err
	}
	v := verifier{
		stdout: lockedWriter{new(sync.Mutex), stdout}, stderr: stderr, settings: s, log: log,
		meter: &meter{began: time.Now()},
	}
	stop := background.Answer(asked, v.printProgress)
	defer stop()
	return fileio.Interruptible(ctx, func() error { return v.run(ctx, args) })
}

func (v verifier) run(ctx context.Context, args []string) error {
	s := v.settings
	switch {
	case s.Manifest != "" && s.NewManifest != "":
		return exit.Usagef("--check and --write exclude each other: give one of them")
	case s.NewManifest == toStdout && s.Output == option.OutputJSON:
		return exit.Usagef("-o json conflicts with --write -: both print to stdout, so leave one of them out")
	case s.RelativeTo != "" && s.NewManifest == "":
		return exit.Usagef("--relative-to is for --write: name the directory of the files as in " +
			"dma-copy verify DIR MANIFEST")
	case s.Manifest != "" && len(args) == 1 && isDirectory(args[0]):
		return v.checkListed(ctx, s.Manifest, args[0])
	case s.Extra && (s.NewManifest != "" || s.Manifest != "" || len(args) == 2 && !isDirectory(args[0])):
		return exit.Usagef("--extra is for the files of a directory: give [DIR] MANIFEST, or --check MANIFEST DIR")
	case s.Manifest != "" && len(args) > 0:
		return v.checkNamed(ctx, s.Manifest, args)
	case s.NewManifest != "" && len(args) > 0:
		return v.writeManifest(ctx, s.NewManifest, args)
	case s.Manifest != "" || s.NewManifest != "":
		return exit.Usagef("no file is named: name those to check or to list")
	case len(args) == 1:
		return v.checkListed(ctx, args[0], "")
	case len(args) == 2 && isDirectory(args[0]):
		return v.checkListed(ctx, args[1], args[0])
	case len(args) == 2:
		return v.comparePair(ctx, args[0], args[1])
	default:
		return exit.Usagef("%d files are named: give FILE COPY or [DIR] MANIFEST, or see \"dma-copy verify --help\"",
			len(args))
	}
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// directoryOf returns the directory in which the kernel looks up the last name of a path.
func directoryOf(path string) string {
	directory, _ := disk.Split(path)
	return directory
}

// verifier is one run of the command.
type verifier struct {
	stdout   io.Writer
	stderr   io.Writer
	settings Settings
	log      zerolog.Logger
	meter    *meter
}

// comparePair compares two files.
func (v verifier) comparePair(ctx context.Context, first, second string) error {
	var files [2]*fileio.Source
	for i, path := range []string{first, second} {
		file, err := fileio.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		files[i] = file
	}
	if os.SameFile(files[0].Info, files[1].Info) {
		return exit.Usagef("%s and %s are one file: name the file and its copy", quote.Bare(first), quote.Bare(second))
	}
	v.meter.bytesTotal.Store(files[0].Info.Size() + files[1].Info.Size())
	v.log.Info().Str("first", first).Str("second", second).Msg("comparing")
	found, err := digest.Compare(ctx, v.settings.Digest,
		meteredSource{files[0], v.meter}, meteredSource{files[1], v.meter})
	if err != nil {
		return err
	}
	if err := errors.Join(files[0].Unchanged(), files[1].Unchanged()); err != nil {
		return err
	}
	return v.judgePair(first, second, found)
}

func (v verifier) judgePair(first, second string, found digest.Comparison) error {
	pair := output.NameInEvent(second)
	r := result{
		FileName: output.NameInEvent(first), Copy: pair.File, RawCopy: pair.Raw, Verdict: matches,
		Digest: found.Sums[0].String(), Expected: found.Sums[1].String(),
	}
	if found.Same() {
		return v.printResult(r, "%s and %s are the same: %s, %s", first, second, found.Sums[0],
			quantity.Bytes(uint64(found.Sizes[0])))
	}
	r.Verdict, r.Offset = differs, &found.Differ
	err := v.printResult(r, "%s and %s differ, first at offset %d: %s (%d bytes) and %s (%d bytes)",
		first, second, found.Differ, found.Sums[0], found.Sizes[0], found.Sums[1], found.Sizes[1])
	if err != nil {
		return err
	}
	return exit.Errorf(exit.Digest, "copy again", "%s and %s differ", quote.Bare(first), quote.Bare(second))
}

// opener opens a file as late as it is read.
type opener func() (*fileio.Source, error)

func openerOf(path string) opener { return func() (*fileio.Source, error) { return fileio.Open(path) } }

func openerWithin(root *os.Root, path string) opener {
	return func() (*fileio.Source, error) { return fileio.OpenWithin(root, path) }
}

// content is what a file contains.
type content struct {
	sum  digest.Sum
	size int64
	err  error
}

// read reads a file to its end.
func (v verifier) read(ctx context.Context, a digest.Algorithm, open opener) (found content) {
	file, err := open()
	if err != nil {
		return content{err: err}
	}
	defer file.Close()
	v.log.Info().Str("path", file.Path).Msg("reading")
	found.sum, found.size, found.err = digest.Of(ctx, a, meteredSource{file, v.meter})
	v.meter.files.Add(1)
	if found.err == nil {
		found.err = file.Unchanged()
	}
	return found
}
