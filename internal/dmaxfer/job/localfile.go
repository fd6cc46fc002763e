package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// StreamName is the path that stands for standard input or output, depending on which side has a file.
const StreamName = "-"

// Use is what a local file may be used for.
type Use uint8

// The uses. Between two sides the peer decides.
const (
	AnyUse    Use = iota // to be sent if it exists, otherwise to be created
	SourceUse            // to be sent
	TargetUse            // to be created, or to be compared or replaced if it exists
)

// Search is what to look for on this side.
type Search struct {
	FS          disk.FS // nil: the operating system's
	Path        string  // StreamName for a stream
	Use         Use
	MakePath    bool // directories above a TargetUse that are missing are created
	DryRun      bool // with MakePath: they are not created
	IdleTimeout time.Duration

	// Overwrite and IgnoreExisting say that this side receives, and replaces what is at Path, or leaves it.
	Overwrite, IgnoreExisting bool

	Stdin, Stdout func() (disk.File, error) // open the stream; nil: this process's
}

// LocalFile is the file of this side: a source to send, or where a target is to be created.
type LocalFile struct {
	FS        disk.FS
	Name      string       // the path to open, as given
	Path      string       // the path to show: as given, with the symlinks at its end resolved
	Source    *disk.Source // nil: this side receives, unless it is a stream
	Directory bool         // there is a directory
	Stream    bool
	Discards  bool      // what is received is not stored: it is a measurement
	Unsized   disk.File // a source that is sent as a stream, because its size is not known; nil: standard streams
	Exists    bool      // there is something, and this side receives by Overwrite or IgnoreExisting

	Overwrite, IgnoreExisting bool // as in Search

	// NoFile says that the target cannot be a file, because its path ends with a slash.
	NoFile bool

	// Unfinished says that a transfer into the directory runs, or has been interrupted. If both sides have the
	// directory and neither says more, this one then receives.
	Unfinished bool

	stdin, stdout func() (disk.File, error)
}

// Find looks for the local file, for at most the idle timeout. It decides before the peer is asked whether this side
// has the file. Something at the path that cannot be a source is an error, never taken for absent: a file that cannot
// be read must not become a target.
func Find(ctx context.Context, s Search) (*LocalFile, error) {
	found := make(chan *LocalFile, 1)
	timeout := func() error {
		return NewError(ErrIdle, nil, "check its file system, or raise --idle-timeout",
			"timeout: opening %s took longer than %s", s.Path, s.IdleTimeout)
	}
	returned, err := within(ctx, s.IdleTimeout, nil, new(atomic.Int64), timeout, func(context.Context) (err error) {
		var f *LocalFile
		defer func() { found <- f }() // after a panic, too
		f, err = s.inspect()
		return err
	})
	if returned {
		return <-found, err
	}
	go func() {
		if f := <-found; f != nil {
			f.Close()
		}
	}()
	return nil, Hung(err)
}

func (s Search) inspect() (*LocalFile, error) {
	if s.FS == nil {
		s.FS = disk.OS
	}
	if s.Path == StreamName {
		return s.found(LocalFile{Path: s.Path, Stream: true}), nil
	}
	info, err := s.FS.Stat(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.Use == SourceUse:
		return nil, s.missing(err)
	case errors.Is(err, fs.ErrNotExist):
		return s.absent()
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, NewError(ErrSettings, err, "choose a shorter name",
			"%s is not a valid file name: %s", s.Path, disk.Reason(err))
	case err != nil && s.isTarget():
		return nil, s.cannotExamineTarget(err)
	case err != nil:
		return nil, disk.CannotStat(s.Path, err)
	case info.Mode.IsDir():
		return s.directory()
	case !info.Mode.IsRegular():
		return nil, NewError(s.kind(), nil, "name a regular file or a directory",
			"%s is neither a regular file nor a directory", s.Path)
	case s.receives():
		return s.target()
	}
	return s.source()
}

// isTarget reports whether this side receives, or its file is compared with the sender's.
func (s Search) isTarget() bool { return s.receives() || s.Use == TargetUse }

// kind returns the kind of an error about what is at the path.
func (s Search) kind() error {
	if s.isTarget() {
		return ErrTarget
	}
	return ErrSource
}

// receives reports whether this side receives, regardless of what is at the path.
func (s Search) receives() bool { return s.Overwrite || s.IgnoreExisting }

// found completes a LocalFile by what was searched for.
func (s Search) found(f LocalFile) *LocalFile {
	f.FS, f.Name, f.stdin, f.stdout = s.FS, s.Path, s.Stdin, s.Stdout
	f.Overwrite, f.IgnoreExisting = s.Overwrite, s.IgnoreExisting
	return &f
}

func (s Search) directory() (*LocalFile, error) {
	state, err := disk.FindTree(s.FS, s.Path)
	if err != nil {
		return nil, err
	}
	return s.found(LocalFile{
		Path: shownPath(s.FS, s.Path), Directory: true, Exists: s.receives(), Unfinished: state == disk.TreeUnfinished,
	}), nil
}

// source opens the file. One whose size does not match its content becomes a stream.
func (s Search) source() (*LocalFile, error) {
	source, err := disk.OpenSource(s.FS, s.Path)
	if err != nil {
		return nil, s.cannotRead(err)
	}
	f := s.found(LocalFile{Path: shownPath(s.FS, s.Path), Source: source})
	unsized, err := source.Unsized()
	if err != nil {
		f.Close()
		return nil, s.cannotRead(err)
	}
	if unsized != nil {
		f.Source, f.Stream, f.Unsized = nil, true, unsized
	}
	return f, nil
}

// cannotRead returns the error for a file that cannot be read. A target is read to be compared.
func (s Search) cannotRead(err error) error {
	failed, is := errors.AsType[*Error](err)
	if !is || failed.Kind != ErrSource {
		return err
	}
	explained := *failed
	explained.Kind = s.kind()
	return &explained
}

// missing returns the error of a source that does not exist.
func (s Search) missing(err error) error {
	at, locateErr := disk.Locate(s.FS, s.Path)
	if errors.Is(locateErr, disk.ErrDangling) {
		return s.dangling(locateErr)
	}
	if locateErr == nil {
		_ = at.Dir.Close() // was only read
	}
	return NewError(ErrSource, err, "check the path", "%s does not exist", s.Path)
}

func (s Search) dangling(err error) error {
	return NewError(s.kind(), err, "fix or remove it", "%s is a dangling symlink", s.Path)
}

// shownPath returns the path to show. One that only the kernel can follow is shown as given.
func shownPath(on disk.FS, path string) string {
	at, err := disk.Locate(on, path)
	if err != nil {
		return path
	}
	_ = at.Dir.Close() // was only read
	return at.Path
}

// absent is where a target is to be created. After a path with a slash at its end that can only be a directory.
func (s Search) absent() (*LocalFile, error) {
	path := strings.TrimRight(s.Path, "/")
	noFile := path != s.Path && path != ""
	if noFile {
		s.Path = path
	}
	f, err := s.target()
	if err != nil {
		return nil, err
	}
	f.NoFile = noFile
	return f, nil
}

// target finds early what would keep the target from being created.
func (s Search) target() (*LocalFile, error) {
	at, err := disk.Locate(s.FS, s.Path)
	switch {
	case errors.Is(err, disk.ErrDangling):
		return nil, s.dangling(err)
	case errors.Is(err, disk.ErrUntrustedLink):
		return nil, disk.CannotCreate(s.Path, err)
	case errors.Is(err, fs.ErrNotExist) && s.MakePath:
		return s.targetBelow()
	case errors.Is(err, fs.ErrNotExist):
		next := "create the directory first, or name the file to send"
		if s.Use == TargetUse {
			next = "create the directory, or use --mkpath"
		}
		return nil, NewError(ErrTarget, err, next, "%s does not exist, and neither does its directory", s.Path)
	case err != nil:
		return nil, disk.CannotCreate(s.Path, err)
	}
	defer at.Dir.Close()
	if err := at.Dir.MayCreate(); err != nil {
		return nil, disk.CannotCreate(s.Path, err)
	}
	return s.found(LocalFile{Path: at.Path, Exists: at.Found != nil}), nil
}

// targetBelow finds a target below directories that are missing. In a dry run they stay missing, and the first of them
// is as absent as the target.
func (s Search) targetBelow() (*LocalFile, error) {
	path := s.Path
	s.MakePath = false
	if s.DryRun {
		s.Path = disk.FirstMissing(s.FS, path)
	} else if err := disk.MakeAbove(s.FS, path); err != nil {
		return nil, NewError(ErrTarget, err, "create it yourself", "cannot create the directory of %s: %s", path,
			disk.Reason(err))
	}
	f, err := s.target()
	if err == nil && s.DryRun {
		f.Path = path
	}
	return f, err
}

// cannotExamineTarget names the symlink where the kernel, with fs.protected_symlinks, only reports that permission is
// denied.
func (s Search) cannotExamineTarget(err error) error {
	if _, targetErr := s.target(); errors.Is(targetErr, disk.ErrUntrustedLink) {
		return targetErr
	}
	return disk.CannotCreate(s.Path, err)
}

// Local returns what the negotiation has to know of the file.
func (f *LocalFile) Local() reference.Local {
	if f.Directory && !f.Exists {
		return reference.Local{HasFile: true}
	}
	if f.Source == nil {
		return reference.Local{}
	}
	return reference.Local{HasFile: true, Size: uint64(f.Source.Info().Size)}
}

// CheckFile returns an error if a file may not be received here. The sender is the other side.
func (f *LocalFile) CheckFile(sender wire.Side) error {
	if !f.NoFile {
		return nil
	}
	return NewError(ErrTarget, nil, "leave out the slash at the end of the path",
		"%s/ does not exist, and the %s sends a file, not a directory", f.Path, sender)
}

// Dense reports whether there is a source without holes, for which a receiver can preallocate.
func (f *LocalFile) Dense() bool {
	return f.Source != nil && f.Source.Info().Allocated >= f.Source.Info().Size
}

// OpenInput opens the stream to send.
func (f *LocalFile) OpenInput() (disk.File, error) {
	switch {
	case f.Unsized != nil:
		return f.Unsized, nil
	case f.stdin != nil:
		return f.stdin()
	}
	return disk.Stdin()
}

// OpenOutput opens the stream to receive into.
func (f *LocalFile) OpenOutput() (disk.File, error) {
	switch {
	case f.Unsized != nil:
		return nil, NewError(ErrSource, nil, nextIfBoth, "both sides have the file (here: %s)", f.Path)
	case f.stdout != nil:
		return f.stdout()
	}
	return disk.Stdout()
}

// NeedsNative returns the error for a source of unknown size where only the reference protocol can be spoken; why is
// the end of its sentence.
func (f *LocalFile) NeedsNative(why string, err error) error {
	return NewError(ErrSource, err, "copy it to a regular file first, and send that",
		"%s has no known size, and %s", f.Path, why)
}

// NextIfBothDirectories is what to do if both sides have a directory and it is not known which one receives.
const NextIfBothDirectories = "use --overwrite on the side that receives, or --ignore-existing to add what is missing"

const nextIfBoth = "use --overwrite on the side whose file may be replaced, or remove it there"

// Explain names the file in an error of the negotiation about which side has it, or about a source of unknown size;
// side is this one. It returns any other error as it is.
func (f *LocalFile) Explain(side wire.Side, err error) error {
	path, peer := f.Path, side.Other()
	if _, explained := errors.AsType[*Error](err); explained {
		return err
	}
	switch {
	case errors.Is(err, wire.ErrWordsDiffer):
		return NewError(wire.ErrWordsDiffer, nil, "give the same --with on both sides, or on none",
			"the %s was given another --with WORD, or only one side was given one: it may be another copy", peer)
	case errors.Is(err, wire.ErrNeedsNative) && f.Unsized != nil:
		why := fmt.Sprintf("the %s uses the reference protocol, which does not support streams", peer)
		return f.NeedsNative(why, err)
	case errors.Is(err, wire.ErrNeedsNative) && f.Directory:
		return NewError(wire.ErrNeedsNative, nil, "run dma-copy on the other side too, or name a file",
			"%s is a directory, and the %s uses the reference protocol, which copies single files only", path, peer)
	case errors.Is(err, wire.ErrNeedsNative) && f.Stream:
		return NewError(wire.ErrNeedsNative, nil, "run dma-copy on the other side too",
			"the %s uses the reference protocol, which does not support streams", peer)
	case errors.Is(err, wire.ErrNeedsNative):
		return NewError(wire.ErrNeedsNative, nil, "run dma-copy on the other side too, or leave out --path fast",
			"the %s uses the reference protocol, which copies by DMA, and this side cannot or may not use DMA", peer)
	case errors.Is(err, wire.ErrNoPath) && (peer == wire.Client || peer == wire.Server):
		return NewError(ErrCapability, nil, "give both the same --path, or leave it out on both sides",
			"%s (a daemon permits only tls unless its --path lists others)",
			wire.ErrNoPath)
	case errors.Is(err, wire.ErrNoPath):
		return NewError(ErrCapability, nil, "leave out --path on both sides, and see what dma-copy devices lists there",
			"%s: one of them does not use DMA, and one not the fast path", wire.ErrNoPath)
	case errors.Is(err, wire.ErrBothHaveFile) && f.Directory:
		return NewError(ErrSource, err, NextIfBothDirectories,
			"both sides have the directory (here: %s)", path)
	case errors.Is(err, wire.ErrBothHaveFile):
		return NewError(ErrSource, err, nextIfBoth, "both sides have the file (here: %s)", path)
	case errors.Is(err, wire.ErrKindMismatch):
		return NewError(ErrSource, err, "name two files or two directories",
			"one side has a file, and the other a directory (here: %s)", path)
	case errors.Is(err, wire.ErrTreeStream):
		return NewError(ErrSource, err, "name a directory on both sides, or copy an archive of it (tar)",
			"a directory cannot be copied from or to a stream (here: %s)", path)
	case !errors.Is(err, wire.ErrNeitherHasFile):
		return err
	case f.Unsized != nil:
		return NewError(ErrSource, err, "name a file there",
			"%s has no known size and is sent as a stream, but the %s named a stream too", path, peer)
	case f.Stream:
		return NewError(ErrSource, err, "name a file on one side",
			"neither side has a file: this side uses a stream (-f -), and the %s uses one too or only receives", peer)
	case f.Exists:
		return NewError(ErrSource, err, "leave out --overwrite and --ignore-existing on the sending side",
			"this side receives %s (%s), but the %s has nothing to send, or receives too", path, f.receivesBy(), peer)
	}
	return NewError(ErrSource, err, "check the path on the sending side", "neither side has the file (here: %s)", path)
}

// receivesBy returns the flag that makes this side receive.
func (f *LocalFile) receivesBy() string {
	if f.IgnoreExisting {
		return "--ignore-existing"
	}
	return "--overwrite"
}

// Incomplete returns the warning about a directory at that path that is read, and which is Unfinished.
func Incomplete(path string) Warned {
	return Warned{Text: path + " is incomplete: a copy into it is running, or was interrupted"}
}

// Close closes the source. It waits at most ReturnTime for a call that hangs, because the transfer has ended and
// nothing depends on it.
func (f *LocalFile) Close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if f.Source != nil {
			f.Source.Close()
		}
		if f.Unsized != nil {
			_ = f.Unsized.Close() // was only read, and is closed already if it was sent
		}
	}()
	select {
	case <-closed:
	case <-time.After(ReturnTime):
	}
}

// TargetWarnings returns a sentence for each thing that the user may want to know of a partial file.
func TargetWarnings(p *disk.Partial) (sentences []string) {
	for _, sentence := range []string{p.Renamed(), p.Discarded()} {
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return sentences
}
