package dmaxfer

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// streamName stands for standard input or output, whichever the other side leaves for it to be.
const streamName = "-"

// place is what a side found under the name that it was given: a source to send, or room for a target.
type place struct {
	path      string       // with links resolved, so that the target is made where the file really lies
	source    *disk.Source // nil: this side receives, unless it is a stream
	stream    bool
	unsized   disk.File // a source that is sent as a stream, since its size does not say what it holds; nil: standard input or output
	overwrite bool      // the target may replace a file
	replaces  bool      // and there is one
}

// inspect decides, before anybody is asked, whether this side has the file. Something that is there but cannot be a
// source is an error, never taken for absent: an unreadable file must not become a target.
func inspect(on disk.FS, path string, overwrite bool) (*place, error) {
	if path == streamName {
		return &place{path: path, stream: true, overwrite: overwrite}, nil
	}
	resolved, info, err := on.Resolve(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absentPlace(on, path, overwrite)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, failure(ErrSettings, err, "name it shorter", "%s is not a possible name: %s", path, disk.Reason(err))
	case err != nil:
		return nil, disk.CannotLook(path, err)
	case !info.Mode.IsRegular():
		return nil, disk.NotRegular(path, info.Mode)
	}
	if overwrite {
		return targetPlace(on, &place{path: resolved, overwrite: true, replaces: true})
	}
	source, err := disk.OpenSource(on, resolved)
	if err != nil {
		return nil, err
	}
	return sourcePlace(&place{path: resolved, source: source})
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
	return &place{path: p.path, stream: true, unsized: file}, nil
}

// asOptions replaces standard input and output by a source that is a stream: nothing is received where it is.
func (p *place) asOptions(o Options) (Options, error) {
	if p.unsized == nil {
		return o, nil
	}
	if o.ReferenceOnly {
		return o, p.needsNative("the reference protocol has no streams", nil)
	}
	o.Stdin = func() (disk.File, error) { return p.unsized, nil }
	o.Stdout = func() (disk.File, error) {
		return nil, failure(ErrSource, nil, nextIfBoth, "both sides have the file; here it is %s", p.path)
	}
	return o, nil
}

func (p *place) needsNative(why string, err error) error {
	return failure(ErrSource, err, "copy it to a regular file first, and send that",
		"%s does not tell its size, and %s", p.path, why)
}

func absentPlace(on disk.FS, path string, overwrite bool) (*place, error) {
	p, err := targetPlace(on, &place{path: path, overwrite: overwrite})
	if err != nil {
		return nil, err
	}
	if p.danglingLink(on) {
		return nil, failure(ErrSource, nil, "mend or remove the link", "%s is a link that leads nowhere", path)
	}
	return p, nil
}

// danglingLink is true if there is something of the name after all.
func (p *place) danglingLink(on disk.FS) bool {
	dir, err := on.OpenDir(filepath.Dir(p.path))
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Stat(filepath.Base(p.path))
	return err == nil
}

// targetPlace finds early what would keep the target from being made.
func targetPlace(on disk.FS, p *place) (*place, error) {
	directory := filepath.Dir(p.path)
	dir, err := on.OpenDir(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, failure(ErrTarget, err, "create the directory first, or name the file that is to be sent",
			"%s is not there and neither is its directory", p.path)
	case errors.Is(err, unix.ENOTDIR):
		return nil, failure(ErrTarget, nil, "name a file in a directory", "%s is not a directory", directory)
	case err != nil:
		return nil, disk.CannotCreate(p.path, err)
	}
	defer dir.Close()
	if err := dir.MayCreate(); err != nil {
		return nil, disk.CannotCreate(p.path, err)
	}
	return p, nil
}

// local is what the negotiation is told.
func (p *place) local() negotiate.Local {
	if p.source == nil {
		return negotiate.Local{}
	}
	return negotiate.Local{HasFile: true, Size: uint64(p.source.Info().Size)}
}

func (p *place) close() {
	if p.source != nil {
		p.source.Close()
	}
	if p.unsized != nil {
		_ = p.unsized.Close() // was only read, and is closed already if it was sent
	}
}
