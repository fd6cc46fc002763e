package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/report"
)

// This file is what keeps sync --delete from deleting what its user has not meant.

// fewDeleted is how many entries are deleted even if they are more than half of the target.
const fewDeleted = 10

// nextAfterGuard is the hint of all guards.
const nextAfterGuard = "check SRC and DST with --dry-run, then give --delete=force, or --max-delete COUNT"

// isForced reports whether the user has said how much may be deleted.
func (t *Copies) isForced() bool { return t.Force || t.MaxDelete > 0 }

// atRoot returns an error for a target that is a whole share.
func (t *Copies) atRoot(e Ends) error {
	if t.isForced() || !t.Sends || connect.PlaceOf(e.Remote).Path != "" {
		return nil
	}
	return exit.Usagef("--delete would delete in the root of share %s: %s", e.Remote.Share, nextAfterGuard)
}

// checkDeletion refuses what can be refused before the copy: what a refused command has copied would count as entries
// of the target when it is repeated. A dry run changes nothing, and checks at its end.
func (t *Copies) checkDeletion(ctx context.Context, e Ends) error {
	if t.Options.DryRun {
		return nil
	}
	if err := t.atRoot(e); err != nil || t.Force {
		return err
	}
	target, err := t.targetAt(e, false)
	if err != nil {
		return err
	}
	defer target.close()
	if _, exists, err := target.lookup(ctx, ""); err != nil || !exists {
		return nil // the copy says what is wrong
	}
	if !t.mayDelete(ctx, e, target) {
		return nil
	}
	complete, err := t.preview(ctx, e)
	if err != nil {
		return nil // the copy fails, too, and reports it
	}
	rest, _, err := t.rest(ctx, e, target, false)
	if err == nil && complete {
		err = t.permit(e, len(rest))
	}
	return err
}

// mayDelete compares the names of both sides before the copy. It returns false only if the source has all that the
// target has; a dry run of the copy, which takes longer, finds out what of the rest would be deleted.
func (t *Copies) mayDelete(ctx context.Context, e Ends, target directory) bool {
	if t.Options.FilesFrom != nil || t.Options.Links != tree.LinksCopy {
		return true // the copy leaves out some of the source, or makes something else of it
	}
	isCopied := func(e tree.Listed) bool { return e.Kind != wire.EntrySpecial }
	source, has := whole(kept(t.source(ctx, e, false), isCopied)), t.counted(whole(target.list(ctx)))
	for range tree.ExtraOrInTheWay(source, has, t.removal(), nil) {
		return true // it may be an error, which the copy has, too
	}
	return false
}

// whole returns a listing that goes on to its end although nobody wants the rest: otherwise a list of the daemon would
// end the connection.
func whole(listing tree.Listing) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		wanted := true
		for each, err := range listing {
			wanted = wanted && yield(each, err)
		}
	}
}

// kept returns a listing of those entries for which keep returns true.
func kept(listing tree.Listing, keep func(tree.Listed) bool) tree.Listing {
	return func(yield func(tree.Listed, error) bool) {
		for each, err := range listing {
			if (err != nil || keep(each)) && !yield(each, err) {
				return
			}
		}
	}
}

// preview sets the mirror of a copy without making or reporting it. If it is not complete because some entries cannot
// be sent, nothing will be deleted either.
func (t *Copies) preview(ctx context.Context, e Ends) (complete bool, err error) {
	t.newMirror()
	o := t.Options
	o.File, o.Mirror, o.DryRun, o.Checksum, o.Xattrs = e.Local, t.mirror, true, false, false
	_, err = t.request(ctx, e, o, "")
	if errors.Is(err, job.ErrSomeFailed) {
		return false, nil
	}
	return err == nil, err
}

// permit returns an error unless so many entries more may be deleted.
func (t *Copies) permit(e Ends, more int) error {
	entries := more + int(t.Total.Deleted)
	limit, nothing := t.MaxDelete, t.nothing()
	switch {
	case more == 0:
		return nil
	case limit > 0 && entries > limit:
		return job.NewError(job.ErrLimit, nil, "compare source and target, and raise --max-delete",
			"more than %d entries would be deleted, so %s is", limit, nothing)
	case t.isForced():
		return nil
	case t.mirror.Entries.Len() == 0:
		return job.NewError(job.ErrLimit, nil, nextAfterGuard,
			"the source is empty and %s would be deleted, so %s is", quantity.Count(int64(entries), "entry"), nothing)
	case entries > fewDeleted && int64(entries)*2 > t.before:
		return job.NewError(job.ErrLimit, nil, nextAfterGuard,
			"more than half of the target would be deleted (%d of %d entries), so %s is", entries, t.before, nothing)
	}
	return t.atRoot(e)
}

// nothing says what is deleted by a command that ends now.
func (t *Copies) nothing() string {
	if t.Total.Deleted > 0 {
		return "nothing more"
	}
	return "nothing"
}

// announce reports what is to be deleted.
func (t *Copies) announce(rest []tree.Listed) {
	const most = 5
	d := report.Deleting{Entries: len(rest), Of: t.before, DryRun: t.Options.DryRun}
	for _, each := range rest[:min(most, len(rest))] {
		d.First = append(d.First, report.Deletion{Path: each.Path, Kind: each.Kind})
	}
	t.Reporter.Deleting(d)
}

// confirm asks the user.
func (t *Copies) confirm(ctx context.Context, entries int, keepAlive func() error) error {
	if t.Confirm == nil || t.Force {
		return nil
	}
	yes, err := t.Confirm(ctx, fmt.Sprintf("delete %s?", quantity.Count(int64(entries), "entry")), keepAlive)
	if err == nil && !yes {
		err = exit.Errorf(exit.Usage, "", "%s was deleted: the answer was not yes", t.nothing())
	}
	return err
}
