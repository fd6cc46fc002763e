package dmaxfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// place is what a side found under the name that it was given: a source to send, or room for a target.
type place struct {
	path      string  // with links resolved, so that the target is made where the file really lies
	source    *source // nil: this side receives
	overwrite bool    // the target may replace a file
	replaces  bool    // and there is one
}

// inspect decides, before anybody is asked, whether this side has the file. Something that is there but cannot be a
// source is an error, never taken for absent: an unreadable file must not become a target.
func inspect(path string, overwrite bool) (*place, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absentPlace(path, overwrite)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, failure(ErrSettings, err, "name it shorter", "%s is not a possible name: %s", path, reason(err))
	case err != nil:
		return nil, cannotLook(path, err)
	case !info.Mode().IsRegular():
		return nil, notRegular(path, info)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, cannotLook(path, err)
	}
	if overwrite {
		return targetPlace(&place{path: resolved, overwrite: true, replaces: true})
	}
	file, err := openSource(resolved)
	if err != nil {
		return nil, err
	}
	return &place{path: resolved, source: file}, nil
}

func notRegular(path string, info fs.FileInfo) error {
	what := "not a regular file"
	if info.IsDir() {
		what = "a directory"
	}
	return failure(ErrSource, nil, "name a regular file", "%s is %s", path, what)
}

func absentPlace(path string, overwrite bool) (*place, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, failure(ErrSource, nil, "mend or remove the link", "%s is a link that leads nowhere", path)
	}
	return targetPlace(&place{path: path, overwrite: overwrite})
}

// targetPlace finds early what would keep the target from being made.
func targetPlace(p *place) (*place, error) {
	directory := filepath.Dir(p.path)
	info, err := os.Stat(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, failure(ErrTarget, err, "create the directory first, or name the file that is to be sent",
			"%s is not there and neither is its directory", p.path)
	case err != nil:
		return nil, cannotCreate(p.path, err)
	case !info.IsDir():
		return nil, failure(ErrTarget, nil, "name a file in a directory", "%s is not a directory", directory)
	}
	if err := unix.Access(directory, unix.W_OK|unix.X_OK); err != nil {
		return nil, cannotCreate(p.path, err)
	}
	return p, nil
}

func cannotCreate(path string, err error) error {
	return failure(ErrTarget, err, "choose a directory that this user may write to", "cannot create %s: %s", path, reason(err))
}

// local is what the negotiation is told.
func (p *place) local() negotiate.Local {
	if p.source == nil {
		return negotiate.Local{}
	}
	return negotiate.Local{HasFile: true, Size: uint64(p.source.size)}
}

func (p *place) close() {
	if p.source != nil {
		p.source.close()
	}
}

// reason is the innermost cause, without the operation and paths that os puts in front.
func reason(err error) string {
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err.Error()
	}
	if link, is := errors.AsType[*os.LinkError](err); is {
		return link.Err.Error()
	}
	return err.Error()
}
