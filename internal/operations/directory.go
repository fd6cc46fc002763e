package operations

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// directory is one end of a sync. After a copy it is the directory that was copied, even if another one is at its path
// by then.
type directory interface {
	// list lists everything below it. The target of a dry run may not exist.
	list(ctx context.Context) tree.Listing

	// lookup returns what is at a path in it; found is false if there is nothing.
	lookup(ctx context.Context, path string) (entry tree.Listed, found bool, err error)

	// remove removes entries in their order, and calls each for every one. If aside, files, symlinks and directories
	// that are not empty are renamed like backups.
	remove(ctx context.Context, entries []tree.Listed, aside bool, each func(tree.Listed, error)) error

	close()
}

// target returns the end of a sync that is made the same as the other one.
func (t *Copies) target(e Ends) (directory, error) {
	return t.targetAt(e, !t.Options.DryRun)
}

// targetAt returns the target that a copy has kept, or without that the directory at its path.
func (t *Copies) targetAt(e Ends, kept bool) (directory, error) {
	if t.Sends {
		return t.daemonDirectory(e, kept), nil
	}
	in := share.Share{Name: "local", Path: e.Local, Access: share.ReadWrite}
	if kept {
		return &localDirectory{opened: share.At(in, disk.OS, t.mirror.Target()), kept: true}, nil
	}
	opened, err := share.Open(in, disk.OS)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // the copy says what is wrong with a file
		return &localDirectory{}, nil
	}
	return &localDirectory{opened: opened}, err
}

// daemonDirectory returns the end of a sync that the daemon has.
func (t *Copies) daemonDirectory(e Ends, kept bool) directory {
	d := &daemonDirectory{client: t.Client, name: t.Side.Is.Other().String()}
	d.place = protocol.Place{Share: e.Remote.ShareName()}
	if !kept {
		d.place.Path, d.mayLack = connect.PlaceOf(e.Remote).Path, t.Sends
	} else {
		d.flags = protocol.ListKept
	}
	return d
}

// localDirectory is on this side.
type localDirectory struct {
	opened *share.Opened // nil: there is none
	kept   bool          // by the copy; otherwise close closes it
}

func (d *localDirectory) close() {
	if d.opened != nil && !d.kept {
		_ = d.opened.Close() // was only read
	}
}

func (d *localDirectory) list(ctx context.Context) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		if d.opened == nil {
			return
		}
		err := d.opened.List(ctx, "", share.ListOptions{Recursive: true, All: true}, yieldEntries(yield))
		if err != nil && !errors.Is(err, errEnough) {
			yield(tree.Listed{}, err)
		}
	}
}

// errEnough ends a list whose entries nobody wants any more.
var errEnough = errors.New("the rest of the list is not needed")

func listedAs(path string, e share.Entry) tree.Listed {
	return tree.Listed{
		Path: path, Kind: e.Kind, File: e.File, Size: e.Size, Modified: e.Modified, Mounted: e.Mounted,
	}
}

// yieldEntries returns a function that yields the entries of a share, but for the listed directory.
func yieldEntries(yield func(tree.Listed, error) bool) func(share.Entry) error {
	return func(e share.Entry) error {
		if e.Path != "" && !yield(listedAs(e.Path, e), nil) {
			return errEnough
		}
		return nil
	}
}

func (d *localDirectory) lookup(_ context.Context, path string) (entry tree.Listed, found bool, err error) {
	if d.opened == nil {
		return tree.Listed{}, false, nil
	}
	e, err := d.opened.Stat(path, share.ListOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Listed{}, false, nil
	}
	return listedAs(path, e), err == nil, err
}

func (d *localDirectory) remove(
	ctx context.Context, entries []tree.Listed, aside bool, each func(tree.Listed, error),
) error {
	in, err := d.opened.Remover("")
	if err != nil {
		return err
	}
	defer in.Close()
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if aside {
			each(e, in.SetAside(e.Path))
		} else {
			each(e, in.Remove(e.Path))
		}
	}
	return nil
}

// daemonDirectory is in a share of the daemon.
type daemonDirectory struct {
	client  *service.Client
	name    string // of the daemon's side
	place   protocol.Place
	flags   protocol.ListFlags
	mayLack bool // it may not exist
}

func (d *daemonDirectory) close() {}

func (d *daemonDirectory) list(ctx context.Context) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		flags := d.flags | protocol.ListRecursive | protocol.ListIdentify | protocol.ListAll
		end, err := d.client.List(ctx, d.place, flags, yieldEntries(yield))
		if err == nil && end.Code != 0 {
			err = exit.Errorf(int(end.Code), "nothing is deleted", "the %s could not list everything (%s)",
				d.name, quote.Printable(end.Text))
		}
		if d.mayLack && isAbsent(err) || err == nil || errors.Is(err, errEnough) {
			return
		}
		yield(tree.Listed{}, err)
	}
}

// isAbsent reports whether a daemon has refused to list something because it does not exist.
func isAbsent(err error) bool {
	refused, is := errors.AsType[*protocol.Refusal](err)
	return is && (refused.Code == exit.Source || refused.Code == exit.Target)
}

func (d *daemonDirectory) lookup(ctx context.Context, below string) (entry tree.Listed, found bool, err error) {
	at := protocol.Place{Share: d.place.Share, Path: path.Join(d.place.Path, below)}
	flags := d.flags | protocol.ListItself | protocol.ListIdentify
	_, err = d.client.List(ctx, at, flags, func(e share.Entry) error {
		entry = listedAs(below, e)
		return nil
	})
	if below != "" && isAbsent(err) {
		return tree.Listed{}, false, nil
	}
	return entry, err == nil, err
}

func (d *daemonDirectory) remove(
	ctx context.Context, entries []tree.Listed, aside bool, each func(tree.Listed, error),
) error {
	request := protocol.RemoveRequest{Place: protocol.Place{Share: d.place.Share}, Kept: true, Aside: aside}
	for _, e := range entries {
		request.Paths = append(request.Paths, e.Path)
	}
	return d.client.Remove(ctx, request, func(_ string, result protocol.Removal) error {
		var err error
		if result.Code != 0 {
			err = &native.PeerAborted{Code: result.Code, Text: result.Text}
		}
		each(entries[0], err)
		entries = entries[1:]
		return nil
	})
}
