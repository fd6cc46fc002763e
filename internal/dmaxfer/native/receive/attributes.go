package receive

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/inode"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file is how a planner compares the attributes of the target's entry with the sender's. Attributes that the
// target's file system cannot store do not count: otherwise each run would copy the same files again.

// compareAttributes returns the first difference between a file and an entry in time, mode and, if it is preserved,
// owner. It also accepts the entry's values as the file system stores them. If uncertain, another version of the file
// could have been stored with the same time.
func (p *planner) compareAttributes(e *entry, info disk.Info) (change native.Change, uncertain bool) {
	owner := p.t.Params.Plan.Owner
	change = inode.Change(info, e.meta, owner)
	if change == native.ChangeNone || p.t.Params.Plan.Compare { // which compares the content
		return change, false
	}
	stored, hasChanged := e.meta, false
	_ = p.inDirectoryOf(e, func(dir disk.Dir, _ string) error { // on an error the file is copied again
		stored, hasChanged = p.prober.Stored(dir, e.meta, owner), dir.IsLocal()
		return nil
	})
	change = inode.Change(info, stored, owner)
	uncertain = change != native.ChangeTime && hasChanged && stored.Modified != e.meta.Modified &&
		info.Changed.Sec < e.meta.Modified.Sec+longestRounding
	return change, uncertain
}

// longestRounding is the longest unit to which file systems round times, in seconds. A file that the target has got
// within this time after its source was written may have been written again since.
const longestRounding = 2

// sameXattrs reports whether what the target has at the path of a file has the same extended attributes, if they are
// preserved. Attributes that cannot be read count as the same, and so do those in a write-only share, whose content a
// peer must not guess.
func (p *planner) sameXattrs(e *entry) bool {
	plan := &p.t.Params.Plan
	if !plan.XAttr || plan.Compare || p.t.Params.Config.HideContent {
		return true
	}
	file, err := p.openOwn(e)
	if err != nil {
		return true
	}
	defer file.Close()
	attributes, err := file.Xattrs()
	return err != nil || inode.HasSum(attributes, e.attributesSum, plan.Privileged)
}

// sameLinkAttributes is compareAttributes for a symlink, which has no mode.
func (p *planner) sameLinkAttributes(e *entry, info disk.Info) bool {
	owner := p.t.Params.Plan.Owner
	if inode.SameTimeAndOwner(info, e.meta, owner) {
		return true
	}
	stored := e.meta
	_ = p.inDirectoryOf(e, func(dir disk.Dir, _ string) error { // on an error the symlink is made again
		if !p.prober.SetsLinks(dir) {
			stored.Modified = info.Modified
			return nil
		}
		stored.Mode = 0o600 // of the file that tries it
		stored = p.prober.Stored(dir, stored, owner)
		return nil
	})
	return inode.SameTimeAndOwner(info, stored, owner)
}

// setAttributes gives a file that has the content of the source its mode and time, and its owner if that is preserved.
// seen is the file when that was found out.
func (p *planner) setAttributes(e *entry, seen disk.Info) error {
	plan := &p.t.Params.Plan
	switch {
	case seen.Links > 1, !plan.Owner && seen.UID != p.t.Params.Config.File.FS.Self().UID:
		return errNotInPlace
	case plan.DryRun:
		return nil
	}
	keep := disk.Preserve{Mode: true, Times: true, Owner: plan.Owner, Privileged: plan.Privileged}
	return p.inDirectoryOf(e, func(dir disk.Dir, name string) error {
		return disk.SetAttributes(dir, name, e.path, seen, keep, e.meta, plan.Durability != wire.DurabilityNone)
	})
}

// errNotInPlace is why a file is replaced although it has the content: other names that lead to it keep their
// attributes, and a file of another user becomes one of this user. It is not reported.
var errNotInPlace = errors.New("internal error: attributes may not be set in place")

// inDirectoryOf calls a function with the directory that contains what an entry would replace, and its name there.
func (p *planner) inDirectoryOf(e *entry, call func(dir disk.Dir, name string) error) error {
	switch d := e.directory; {
	case d == nil:
		at, err := disk.Locate(p.t.Params.Config.File.FS, p.t.Params.Config.File.Name)
		if err != nil {
			return err
		}
		defer at.Dir.Close()
		return call(at.Dir, at.Name)
	case d.of != nil:
		return d.of.Do(func(dir disk.Dir) error { return call(dir, e.name) })
	case d.seen != nil:
		return call(d.seen, e.name)
	}
	return nil
}
