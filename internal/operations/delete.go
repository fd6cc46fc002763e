package operations

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// maxDeletePaths bounds the memory of the paths to delete, in bytes: all of them are found before the first is deleted.
// It also bounds the memory of the source's entries.
const maxDeletePaths = 256 << 20

// Mirror copies one directory, and deletes from the target what the source does not have.
func (t *Copies) Mirror(ctx context.Context, e Ends) error {
	if err := t.checkDeletion(ctx, e); err != nil {
		return report.WithSide(t.Side.Is, err)
	}
	t.newMirror()
	err := t.CopyAll(ctx, []Ends{e})
	if exit.Code(err) == exit.SomeFailed && !t.Options.DryRun {
		err = t.clearAndCopyAgain(ctx, e, err)
	}
	if err == nil {
		err = t.deleteRest(ctx, e)
	}
	return errors.Join(err, report.WithSide(t.Side.Is, t.release(ctx)))
}

// newMirror has the next copy note what it announces, and keep its directories.
func (t *Copies) newMirror() { t.mirror = &tree.Mirror{Entries: tree.NewRecord(maxDeletePaths)} }

// clearAndCopyAgain gives obstacles of failed entries the names of backups, and copies these entries again. So nothing
// is lost if an entry fails again, for another reason. Otherwise the obstacles are deleted with everything else that
// the source does not have.
func (t *Copies) clearAndCopyAgain(ctx context.Context, e Ends, failed error) error {
	cleared, renamed, err := t.clearWay(ctx, e)
	switch {
	case err != nil:
		err = report.WithSide(t.Side.Is, err)
	case cleared == 0:
		return failed
	default:
		if err = report.WithSide(t.Side.Is, t.release(ctx)); err == nil {
			// The total counts the second copy alone.
			t.Total = report.Total{Deleted: t.Total.Deleted, Kept: t.Total.Kept}
			t.newMirror()
			err = t.CopyAll(ctx, []Ends{e})
		}
	}
	if err != nil && renamed > 0 && !t.Options.Backup {
		t.Log.Warn().Int("entries", renamed).
			Msg("entries in the way are kept as NAME~ until everything can be copied")
	}
	return err
}

// clearWay returns how many obstacles it has renamed or removed, and how many of them it has renamed. Special files and
// empty directories are removed at once.
func (t *Copies) clearWay(ctx context.Context, e Ends) (cleared, renamed int, err error) {
	if t.mirror.Entries.Len() == 0 {
		return 0, 0, nil
	}
	target, err := t.target(e)
	if err != nil {
		return 0, 0, err
	}
	defer target.close()
	obstacles, empty, err := t.obstacles(ctx, target)
	if err != nil || len(obstacles) == 0 {
		return 0, 0, err
	}
	if t.Options.Backup || t.Confirm != nil {
		t.announce(obstacles)
	}
	if err := t.mayRemove(ctx, e, len(obstacles)); err != nil {
		return 0, 0, err
	}
	err = target.remove(ctx, obstacles, true, func(at tree.Listed, err error) {
		isGone := at.Kind == wire.EntrySpecial || empty[at.Path]
		if err == nil {
			cleared++
			if !isGone {
				renamed++
			}
		}
		if err != nil || isGone || t.Options.Backup {
			t.deleted(at, err)
		}
	})
	return cleared, renamed, err
}

// obstacles returns the entries in the way of the source's entries, without their content, and the empty directories
// among them. A target that folds names may list an obstacle under another name, so it is looked up, unless a pattern
// may keep some of its content.
func (t *Copies) obstacles(
	ctx context.Context, target directory,
) (obstacles []tree.Listed, empty map[string]bool, err error) {
	removal := tree.Removal{Protect: t.Options.Filter, Aside: true}
	var missing []tree.Listed
	isMissing := func(e tree.Listed) { missing = append(missing, e) }
	directories := map[string]bool{}
	empty = map[string]bool{}
	beforeLast, last := "", "" // paths in the list; a directory is compared when the entry after its content is read
	listing := func(yield func(tree.Listed, error) bool) {
		for each, err := range target.list(ctx) {
			if beforeLast, last = last, each.Path; !yield(each, err) {
				return
			}
		}
		beforeLast = last
	}
	for each, err := range tree.ExtraOrInTheWay(t.mirror.Entries.List(), listing, removal, isMissing) {
		switch {
		case err != nil:
			return nil, nil, t.notCompared(err)
		case each.Mounted: // whose entry has failed for good
		case each.InTheWay:
			obstacles = append(obstacles, each)
			empty[each.Path] = each.Kind == wire.EntryDirectory && each.Path == beforeLast
		default:
			for at := path.Dir(each.Path); !directories[at]; at = path.Dir(at) {
				directories[at] = true
			}
		}
	}
	if t.Options.Filter != nil {
		return obstacles, empty, nil
	}
	folded, err := t.lookUp(ctx, target, missing, directories)
	return append(obstacles, tree.FoldedInTheWay(missing, folded)...), empty, err
}

// release closes the directories that the copy has kept, on both sides.
func (t *Copies) release(ctx context.Context) error {
	if ctx.Err() == nil {
		// Any other request has the daemon let go of its directory.
		if _, err := t.Client.RoundTrip(ctx, nil); err != nil {
			t.Log.Debug().Err(err).Msg("the daemon closes its directory with the connection")
		}
	}
	return t.mirror.Close()
}

// deleteRest deletes from the target what the copy has not announced. It is called after a copy without failures, which
// has kept the directories of both sides. A file has nothing to delete.
func (t *Copies) deleteRest(ctx context.Context, e Ends) error {
	t.Total.Deletes = true
	if t.summary.Tree == nil {
		return nil
	}
	rest, err := t.deleteFrom(ctx, e)
	if errors.Is(err, comch.ErrPeerLost) || errors.Is(err, wire.ErrPeerLost) {
		err = exit.Errorf(exit.Peer, "run the same command again",
			"the copy is complete, but the connection to the %s was lost before everything was deleted",
			t.Side.Is.Other())
	}
	if err == nil && t.Total.Kept > 0 {
		err = exit.Errorf(exit.SomeFailed, "remove the causes and run the same command again",
			"%d of %d entries could not be deleted", t.Total.Kept, rest)
	}
	return report.WithSide(t.Side.Is, err)
}

// deleteFrom returns how many entries there were to delete.
func (t *Copies) deleteFrom(ctx context.Context, e Ends) (entries int, err error) {
	target, err := t.target(e)
	if err != nil {
		return 0, err
	}
	defer target.close()
	rest, mounted, err := t.rest(ctx, e, target, !t.Options.DryRun)
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		t.announce(rest)
	}
	if t.Options.DryRun {
		err = t.permit(e, len(rest))
		for _, each := range rest {
			t.deleted(each, nil)
		}
	} else if err = t.mayRemove(ctx, e, len(rest)); err == nil {
		err = target.remove(ctx, rest, t.Options.Backup, t.deleted)
	}
	if err != nil {
		return len(rest) + len(mounted), err
	}
	for _, each := range mounted { // which the source does not have, and nobody can remove
		t.deleted(each, disk.NewError(disk.ErrTarget, nil, "unmount it, or exclude it",
			"cannot remove %s: it is a mount point, so nothing in it was deleted", each.Path))
	}
	return len(rest) + len(mounted), nil
}

// mayRemove returns an error unless so many entries may be removed, now, from the directory of the copy.
func (t *Copies) mayRemove(ctx context.Context, e Ends, entries int) error {
	err := t.permit(e, entries)
	if err == nil && entries > 0 {
		err = t.confirm(ctx, entries, func() error { return t.checkEnds(ctx, e) })
	}
	if err == nil {
		err = t.checkEnds(ctx, e)
	}
	return err
}

// checkEnds returns an error unless the paths of both sides still lead to the directories of the copy.
func (t *Copies) checkEnds(ctx context.Context, e Ends) error {
	if err := t.mirror.Check(disk.OS, e.Local); err != nil {
		return err
	}
	_, _, err := t.daemonDirectory(e, true).lookup(ctx, "")
	return err
}

// rest finds what is to be deleted, each directory after its content, and mount points, which cannot be. Before the
// copy that is also what is in the way of it, and it counts the entries of the target.
func (t *Copies) rest(
	ctx context.Context, e Ends, target directory, copied bool,
) (rest, mounted []tree.Listed, err error) {
	find, listing := tree.Extra, target.list(ctx)
	if !copied {
		find, listing = tree.ExtraOrInTheWay, t.counted(listing)
	}
	var missing []tree.Listed
	bytes := 0
	isMissing := func(e tree.Listed) {
		if last := len(missing) - 1; last < 0 || !strings.HasPrefix(e.Path, missing[last].Path+"/") {
			missing, bytes = append(missing, e), bytes+len(e.Path)
		}
	}
	for each, err := range find(t.mirror.Entries.List(), listing, t.removal(), isMissing) {
		if err != nil {
			return nil, nil, t.notCompared(err)
		}
		if each.Mounted {
			mounted = append(mounted, each)
		} else {
			rest = append(rest, each)
		}
		if bytes += len(each.Path); bytes > maxDeletePaths {
			return nil, nil, job.NewError(job.ErrLimit, nil, "remove a part of them first",
				"the paths to delete have more than %d bytes, so nothing is deleted", maxDeletePaths)
		}
	}
	if rest, err = t.withoutSkipped(ctx, e, rest, copied); err != nil {
		return nil, nil, err
	}
	var directories map[string]bool
	if !copied {
		directories = map[string]bool{}
		for _, each := range rest {
			directories[path.Dir(each.Path)] = true
		}
	}
	found, err := t.lookUp(ctx, target, missing, directories)
	return tree.WithoutFolded(rest, found), mounted, err
}

// counted counts the entries of a target before the copy.
func (t *Copies) counted(listing tree.Listing) tree.Listing {
	t.before = 0
	return kept(listing, func(tree.Listed) bool { t.before++; return true })
}

// lookUp returns the entries that the list of the target does not have, and that are there under another name. Only
// those in some directories can be, where the target has what the source does not have. Without these it is after the
// copy: if an entry is not there, another process has changed the target meanwhile.
func (t *Copies) lookUp(
	ctx context.Context, target directory, missing []tree.Listed, directories map[string]bool,
) (found []tree.Listed, err error) {
	for _, e := range missing {
		if directories != nil && !directories[path.Dir(e.Path)] {
			continue
		}
		entry, exists, err := target.lookup(ctx, e.Path)
		switch {
		case err != nil:
			return nil, err
		case exists:
			found = append(found, entry)
		case directories == nil:
			return nil, disk.NewError(disk.ErrSourceChanged, nil,
				"run the same command again when no other process changes it",
				"nothing is deleted: %s vanished from the target during the copy", e.Path)
		}
	}
	return found, nil
}

// source lists all that the source of a copy has.
func (t *Copies) source(ctx context.Context, e Ends, copied bool) tree.Listing {
	if !t.Sends {
		return t.daemonDirectory(e, copied).list(ctx)
	}
	return tree.List(func() (*tree.Walk, error) {
		return tree.Open(disk.OS, e.Local, tree.Options{All: true, Filter: t.Options.Filter})
	})
}

// withoutSkipped returns the entries without those that only the copy leaves out: special files that the source has,
// too, with --links skip what it has as a symlink, and what is out of scope.
func (t *Copies) withoutSkipped(
	ctx context.Context, e Ends, rest []tree.Listed, copied bool,
) ([]tree.Listed, error) {
	isSpecial := func(e tree.Listed) bool { return e.Kind == wire.EntrySpecial }
	skipsLinks, skipsFiles := t.Options.Links == tree.LinksSkip, t.Options.Scope != tree.Scope{}
	if len(rest) == 0 || !skipsLinks && !skipsFiles && !slices.ContainsFunc(rest, isSpecial) {
		return rest, nil
	}
	atOrAbove := map[string]bool{".": true}
	for _, each := range rest {
		for at := each.Path; !each.InTheWay && !atOrAbove[at]; at = path.Dir(at) {
			atOrAbove[at] = true
		}
	}
	skipped, special := map[string]bool{}, map[string]bool{}
	for each, err := range t.source(ctx, e, copied) {
		switch isLink := each.Kind == wire.EntrySymlink; {
		case err != nil:
			return nil, err
		case !atOrAbove[each.Path]:
		case isSpecial(each):
			special[each.Path] = true
		case skipsLinks && isLink, skipsFiles && (isLink || each.Kind == wire.EntryFile),
			t.Options.Scope.OneFileSystem && each.Mounted: // then what is below it
			skipped[each.Path] = true
		}
	}
	rest = slices.DeleteFunc(rest, func(e tree.Listed) bool { return isSpecial(e) && special[e.Path] })
	return tree.Without(rest, skipped), nil
}

// notCompared returns the error for source and target that could not be compared.
func (t *Copies) notCompared(err error) error {
	if errors.Is(err, tree.ErrRecordFull) {
		return job.NewError(job.ErrLimit, err, "sync a part of it",
			"the paths of the source have more than %d bytes, so nothing is deleted", maxDeletePaths)
	}
	return err
}

// removal returns how the target's entries are deleted.
func (t *Copies) removal() tree.Removal {
	return tree.Removal{Protect: t.Options.Filter, Aside: t.Options.Backup}
}

// deleted reports one entry.
func (t *Copies) deleted(e tree.Listed, err error) {
	d := report.Deletion{Path: e.Path, Kind: e.Kind, InTheWay: e.InTheWay, DryRun: t.Options.DryRun, Err: err}
	t.Total.Delete(d)
	t.Reporter.Deleted(d)
}
