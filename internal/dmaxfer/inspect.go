package dmaxfer

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// streamName stands for standard input or output, whichever the other side leaves for it to be.
const streamName = "-"

// place is what a side found under the name that it was given: a source to send, or room for a target.
type place struct {
	given     string       // the path to open
	path      string       // the path to show: as given, with the symlinks at its end resolved
	source    *disk.Source // nil: this side receives, unless it is a stream
	stream    bool
	unsized   disk.File // a source that is a stream, as its size is not that of its content; nil: standard streams
	overwrite bool      // the target may replace a file
	replaces  bool      // and there is one
}

// find is inspect within the idle timeout.
func find(ctx context.Context, o Options) (*place, error) {
	found := make(chan *place, 1)
	unanswered := func() error {
		return failure(ErrIdle, nil, "check its file system, or raise --idle-timeout",
			"timeout: opening %s took longer than %s", o.File, o.IdleTimeout)
	}
	returned, err := within(ctx, o.IdleTimeout, nil, unanswered, func(context.Context) error {
		p, err := inspect(o.files(), o.File, o.Overwrite)
		found <- p
		return err
	})
	if returned {
		return <-found, err
	}
	go func() {
		if p := <-found; p != nil {
			p.close()
		}
	}()
	return nil, hung(err)
}

// inspect decides, before anybody is asked, whether this side has the file. Something that is there but cannot be a
// source is an error, never taken for absent: an unreadable file must not become a target.
func inspect(on disk.FS, path string, overwrite bool) (*place, error) {
	if path == streamName {
		return &place{given: path, path: path, stream: true, overwrite: overwrite}, nil
	}
	info, err := on.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return targetPlace(on, path, overwrite)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, failure(ErrSettings, err, "choose a shorter name",
			"%s is not a valid file name: %s", path, disk.Reason(err))
	case errors.Is(err, fs.ErrPermission) && overwrite:
		return nil, cannotLookAtTarget(on, path, err)
	case err != nil:
		return nil, disk.CannotStat(path, err)
	case !info.Mode.IsRegular():
		return nil, disk.NotRegular(path, info.Mode)
	case overwrite:
		return targetPlace(on, path, overwrite)
	}
	source, err := disk.OpenSource(on, path)
	if err != nil {
		return nil, err
	}
	return sourcePlace(&place{given: path, path: sourcePath(on, path), source: source})
}

// sourcePlace finds out whether the source has a size.
func sourcePlace(p *place) (*place, error) {
	file, err := p.source.Unsized()
	if err != nil {
		p.close()
		return nil, err
	}
	if file == nil {
		return p, nil
	}
	return &place{given: p.given, path: p.path, stream: true, unsized: file}, nil
}

// asOptions replaces standard input and output by a source that is a stream: nothing is received where it is.
func (p *place) asOptions(o Options) (Options, error) {
	if p.unsized == nil {
		return o, nil
	}
	if o.ReferenceOnly {
		return o, p.needsNative("the reference protocol does not support streams", nil)
	}
	o.Stdin = func() (disk.File, error) { return p.unsized, nil }
	o.Stdout = func() (disk.File, error) {
		return nil, failure(ErrSource, nil, nextIfBoth, "both sides have the file (here: %s)", p.path)
	}
	return o, nil
}

func (p *place) needsNative(why string, err error) error {
	return failure(ErrSource, err, "copy it to a regular file first, and send that",
		"%s has no known size, and %s", p.path, why)
}

// sourcePath is the path to show. What cannot be followed here has been followed by the kernel, and is shown as given.
func sourcePath(on disk.FS, path string) string {
	at, err := disk.Locate(on, path)
	if err != nil {
		return path
	}
	_ = at.Dir.Close() // was only read
	return at.Path
}

// cannotLookAtTarget names the symlink where the kernel, with fs.protected_symlinks, only says that permission is
// denied.
func cannotLookAtTarget(on disk.FS, path string, err error) error {
	if _, placeErr := targetPlace(on, path, true); errors.Is(placeErr, disk.ErrUntrustedLink) {
		return placeErr
	}
	return disk.CannotStat(path, err)
}

// targetPlace finds early what would keep the target from being made.
func targetPlace(on disk.FS, path string, overwrite bool) (*place, error) {
	at, err := disk.Locate(on, path)
	switch {
	case errors.Is(err, disk.ErrDangling):
		return nil, failure(ErrSource, err, "fix or remove it", "%s is a dangling symlink", path)
	case errors.Is(err, disk.ErrUntrustedLink):
		return nil, disk.CannotCreate(path, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, failure(ErrTarget, err, "create the directory first, or name the file to send",
			"%s does not exist, and neither does its directory", path)
	case err != nil:
		return nil, disk.CannotCreate(path, err)
	}
	defer at.Dir.Close()
	if err := at.Dir.MayCreate(); err != nil {
		return nil, disk.CannotCreate(path, err)
	}
	return &place{given: path, path: at.Path, overwrite: overwrite, replaces: at.Found != nil}, nil
}

// local is what the negotiation is told.
func (p *place) local() negotiate.Local {
	if p.source == nil {
		return negotiate.Local{}
	}
	return negotiate.Local{HasFile: true, Size: uint64(p.source.Info().Size)}
}

// close waits returnTime for a source that hangs in it, since the copy has ended and nothing depends on it.
func (p *place) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if p.source != nil {
			p.source.Close()
		}
		if p.unsized != nil {
			_ = p.unsized.Close() // was only read, and is closed already if it was sent
		}
	}()
	select {
	case <-closed:
	case <-time.After(returnTime):
	}
}
