package main

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// maxDeletePaths bounds the memory of the paths to delete, in bytes: all of them are found before the first is deleted.
const maxDeletePaths = 256 << 20

// deleteRest deletes from the target what the source does not have. It is called after a copy without failures. A file
// has nothing to delete, nor has a directory that a dry run has not made.
func (t *transfers) deleteRest(ctx context.Context, e ends) error {
	t.total.Deletes = true
	if !isDirectory(e.local) {
		return nil
	}
	rest, err := t.rest(ctx, e)
	if err == nil && len(rest) > 0 {
		err = t.delete(ctx, e, rest)
	}
	if errors.Is(err, comch.ErrPeerLost) || errors.Is(err, negotiate.ErrPeerLost) {
		err = exit.Errorf(exit.Peer, "run the same command again",
			"the copy is complete, but the connection to the %s was lost before everything was deleted",
			t.side.side.Other())
	}
	if err == nil && t.total.Kept > 0 {
		err = exit.Errorf(exit.SomeFailed, "remove the causes and run the same command again",
			"%d of %d entries could not be deleted", t.total.Kept, len(rest))
	}
	return withSide(t.side.side, err)
}

// rest finds what is to be deleted, each directory after its content.
func (t *transfers) rest(ctx context.Context, e ends) ([]tree.Listed, error) {
	options := tree.Options{SkipLeftovers: !t.settings.Sends} // another copy may be at work in the target
	here := tree.List(func() (*tree.Walk, error) { return tree.Open(disk.OS, e.local, options) })
	source, target := here, t.listing(ctx, e.request.Place)
	if !t.settings.Sends {
		source, target = target, source
	}
	protect, err := t.protected()
	if err != nil {
		return nil, err
	}
	var rest []tree.Listed
	bytes, limit := 0, t.settings.MaxDelete
	for each, err := range tree.Extra(source, target, protect) {
		if err != nil {
			return nil, err
		}
		rest = append(rest, each)
		bytes += len(each.Path)
		switch {
		case limit > 0 && len(rest) > limit:
			return nil, job.NewError(job.ErrLimit, nil, "compare source and target, and raise --max-delete",
				"more than %d entries would be deleted, so nothing is", limit)
		case bytes > maxDeletePaths:
			return nil, job.NewError(job.ErrLimit, nil, "remove a part of them first",
				"the paths to delete have more than %d bytes, so nothing is deleted", maxDeletePaths)
		}
	}
	return rest, nil
}

// protected returns the filter of what is not deleted: what the patterns exclude, and with --backup what that has kept.
func (t *transfers) protected() (*tree.Filter, error) {
	if !t.settings.Backup {
		return t.options.Filter, nil
	}
	return tree.NewFilter(append([]tree.Rule{{Pattern: "*~"}}, t.rules...))
}

// errEnough ends a listing whose entries nobody wants any more.
var errEnough = errors.New("the rest of the list is not needed")

// listing lists a directory of the daemon. The target of a dry run may not exist yet.
func (t *transfers) listing(ctx context.Context, at negotiate.Place) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		end, err := t.client.List(ctx, at, negotiate.ListRecursive, func(e share.Entry) error {
			if e.Path != "" && !yield(tree.Listed{Path: e.Path, Kind: e.Kind}, nil) {
				return errEnough
			}
			return nil
		})
		if err == nil && end.Code != 0 {
			err = exit.Errorf(int(end.Code), "nothing is deleted", "the %s could not list everything (%s)",
				t.side.side.Other(), quote.Printable(end.Text))
		}
		if refused, is := errors.AsType[*negotiate.Refusal](err); is && t.settings.DryRun && t.settings.Sends &&
			(refused.Code == exit.Source || refused.Code == exit.Target) {
			return
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(tree.Listed{}, err)
		}
	}
}

// delete deletes the entries, or in a dry run reports them.
func (t *transfers) delete(ctx context.Context, e ends, rest []tree.Listed) error {
	switch {
	case t.settings.DryRun:
		for _, each := range rest {
			t.deleted(each, nil)
		}
		return nil
	case t.settings.Sends:
		return t.deleteRemote(ctx, e.request.Place, rest)
	}
	here, err := share.Open(share.Share{Name: "local", Path: e.local, Access: share.ReadWrite}, disk.OS)
	if err != nil {
		return err
	}
	for _, each := range rest {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		t.deleted(each, here.Remove(each.Path))
	}
	return errors.Join(err, here.Close())
}

func (t *transfers) deleteRemote(ctx context.Context, at negotiate.Place, rest []tree.Listed) error {
	paths := make([]string, len(rest))
	for i, each := range rest {
		paths[i] = each.Path
	}
	return t.client.Remove(ctx, at, paths, func(_ string, result negotiate.Removal) error {
		var err error
		if result.Code != 0 {
			err = &negotiate.PeerAborted{Code: result.Code, Text: result.Text}
		}
		t.deleted(rest[0], err)
		rest = rest[1:]
		return nil
	})
}

// deleted reports one entry.
func (t *transfers) deleted(e tree.Listed, err error) {
	d := report.Deletion{Path: e.Path, Kind: e.Kind, DryRun: t.settings.DryRun, Err: err}
	t.total.Delete(d)
	t.reporter.Deleted(d)
}
