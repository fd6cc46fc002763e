package dmaxfer

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// treeChecker holds the attempts of one seed to what is promised of trees.
type treeChecker struct {
	*checker
	model *treeModel // of the last attempt, from what there was before it
	old   fileTree   // of the target, before the first attempt
	new   map[string][]treeEntry
}

func newTreeChecker(t *testing.T, sc scenario) *treeChecker {
	return &treeChecker{checker: &checker{scenario: sc, t: t}}
}

// fileResults are the results that a side was told of the entries of a tree, by path.
type fileResults map[string]job.FileDone

// isTemporary reports whether a side that is stopped may leave a file of this name.
func isTemporary(name string) bool {
	return disk.IsLeftover(path.Base(name)) || strings.HasSuffix(name, ".dma-copy-new")
}

// target returns what the receiver has.
func (c *treeChecker) target() fileTree {
	c.t.Helper()
	return treeAt(c.t, c.disks[c.Sender.Other()], simTree)
}

// attempt and run are those of a checker, and note what there was before.
func (c *treeChecker) attempt(disks [2]*disktest.Memory, what fault) results {
	c.t.Helper()
	c.look(disks)
	return c.checker.attempt(disks, what)
}

func (c *treeChecker) run(disks [2]*disktest.Memory, what fault, with injection) results {
	c.t.Helper()
	c.look(disks)
	return c.checker.run(disks, what, with)
}

// look foretells what an attempt does that comes next.
func (c *treeChecker) look(disks [2]*disktest.Memory) {
	c.t.Helper()
	c.disks = disks
	source, target := treeAt(c.t, disks[c.Sender], simTree), c.target()
	if c.new == nil {
		c.old, c.new = target, map[string][]treeEntry{}
	}
	interrupted := slices.Contains(c.list(c.Sender.Other()), ".tree.dma-copy-part")
	compares := !c.Overwrite && !c.IgnoreExisting && target != nil && !interrupted
	if compares && c.Sender == wire.DPU { // then the host sends
		source, target = target, source
	}
	c.model = foretell(c.scenario, source, target, compares)
	if c.readsOnly() {
		return
	}
	for _, e := range c.model.entries {
		if e.unsent {
			continue
		}
		if e.action != job.Failed {
			c.accept(e.path, e.want)
		}
		if e.first != "" && c.fault.Kind == diskFails { // which may hide the first name of a file
			c.accept(e.path, e.is)
			for _, other := range c.model.entries {
				alone := *other
				was, existed := c.model.found(other)
				if other.first == e.first && existed && c.model.unchanged(&alone, was) {
					c.accept(e.path, was) // or a link to it
				}
			}
		}
	}
}

// readsOnly reports whether nothing may change.
func (c *treeChecker) readsOnly() bool { return c.DryRun || c.model.compares }

// accept notes a content that an entry of the target may have.
func (c *treeChecker) accept(name string, e treeEntry) { c.new[name] = append(c.new[name], e) }

// isNew reports whether an entry has a content of the source.
func (c *treeChecker) isNew(name string, got treeEntry) bool {
	return slices.ContainsFunc(c.new[name], got.same)
}

// backupSuffix is what the name of a backup has after that of the file. Each attempt of a seed may replace a file.
var backupSuffix = regexp.MustCompile(`~(\d~)?$`)

// isBackup reports whether an entry is what was replaced.
func (c *treeChecker) isBackup(name string, got treeEntry) bool {
	of := backupSuffix.ReplaceAllString(name, "")
	was, existed := c.old[of]
	return of != name && c.Backup && (existed && was.same(got) || c.isNew(of, got))
}

// hasBackup reports whether a backup of the file at a path is what it was.
func (t fileTree) hasBackup(of string, was treeEntry) bool {
	for name, is := range t {
		if name != of && backupSuffix.ReplaceAllString(name, "") == of && is.same(was) {
			return true
		}
	}
	return false
}

// mustSucceed expects exactly what the model foretold.
func (c *treeChecker) mustSucceed(when string, e results) {
	c.t.Helper()
	allowed := c.model.codes()
	for side, err := range e.errs {
		if !slices.Contains(allowed, exit.Code(err)) {
			c.t.Errorf("%s the %s says %d (%v), not %v", when, wire.Side(side), exit.Code(err), err, allowed)
		}
	}
	if allowed[0] != 0 && allowed[0] != exit.SomeFailed {
		c.entries(e)
		return
	}
	c.mustHave(when)
	c.mustLeave(when, allowed[0] != 0)
	for side, told := range e.done {
		c.mustBeTold(when, wire.Side(side), told)
		c.mustCount(when, wire.Side(side), e.told[side].Tree)
	}
}

// mustHave expects of each entry what the model says, with its attributes.
func (c *treeChecker) mustHave(when string) {
	c.t.Helper()
	got := c.target()
	if c.readsOnly() {
		if before := c.before(); !maps.Equal(got, before) {
			c.t.Errorf("%s the target has changed, from %s to %s", when, before, got)
		}
		return
	}
	sent := map[string]bool{}
	for _, e := range c.model.entries {
		if e.unsent || e.path == "" {
			continue
		}
		sent[e.path] = true
		is, was := got[e.path], c.model.target[e.path]
		switch want := e.want; {
		case e.action == job.Failed, e.action == job.Existing:
			if !is.same(was) {
				c.t.Errorf("%s %s is %s, and the target has changed", when, e.path, e.action)
			}
		case !is.same(want):
			c.t.Errorf("%s %s is not that of the source", when, e.path)
		case !c.sameAttributes(e, is):
			c.t.Errorf("%s %s has the attributes %o %v %t, want %o %v", when, e.path,
				is.perm, is.modified, is.xattr, want.perm, want.modified)
		case e.first != "" && is.inode != got[e.first].inode:
			c.t.Errorf("%s %s and %s are different files", when, e.path, e.first)
		case c.Backup && c.Overwrite && e.action == job.Copied && was.isFile():
			if !got.hasBackup(e.path, was) {
				c.t.Errorf("%s no backup of %s is what it was", when, e.path)
			}
		}
	}
	for name, is := range got {
		_, existed := c.model.target[name]
		if !sent[name] && !existed && !c.isBackup(name, is) && !(c.untidy && isTemporary(name)) {
			c.t.Errorf("%s %s is left over", when, name)
		}
	}
}

// isFile reports whether there is a regular file.
func (e treeEntry) isFile() bool { return e.inode != 0 && e.mode == 0 }

// before returns what the target had before the last attempt.
func (c *treeChecker) before() fileTree {
	if c.model.Sender != c.Sender {
		return c.model.source
	}
	return c.model.target
}

// sameAttributes reports whether an entry of the target has those of the source, as far as they are copied.
func (c *treeChecker) sameAttributes(e *modelEntry, is treeEntry) bool {
	copied := e.action == job.Copied
	switch {
	case e.is.mode == fs.ModeSymlink:
		return !copied || is.modified == e.is.modified
	case e.isDirectory():
		return is.perm == e.is.perm && is.modified == e.is.modified && (!copied || is.xattr == (c.Xattrs && e.is.xattr))
	case copied && e.first == "" && is.xattr != (c.Xattrs && e.is.xattr):
		return false
	case e.keeps:
		return true
	}
	return is.perm == e.is.perm && is.modified == e.is.modified
}

// mustLeave expects that the receiver has nothing but its tree, unless some entries have failed.
func (c *treeChecker) mustLeave(when string, failed bool) {
	c.t.Helper()
	for _, name := range c.list(c.Sender.Other()) {
		if name != path.Base(simTree) && !(failed && !c.readsOnly() && isTemporary(name)) {
			c.t.Errorf("%s the receiver is left with %q", when, name)
		}
	}
}

// mustBeTold expects one event for each entry that a side knows of.
func (c *treeChecker) mustBeTold(when string, side wire.Side, told fileResults) {
	c.t.Helper()
	count := 0
	for _, e := range c.model.entries {
		if e.unsent && side != c.model.Sender {
			continue
		}
		count++
		is, found := told[e.path]
		bytes := int64(0)
		if e.is.mode == 0 && e.first == "" && !e.unsent {
			bytes = int64(len(e.is.text))
		}
		if !found || is.Action != e.action || is.Bytes != bytes || (is.Err != nil) != (is.Action == job.Failed) {
			c.t.Errorf("%s the %s is told that %q is %s (%t, %d bytes, %v), not %s (%d bytes)",
				when, side, e.path, is.Action, found, is.Bytes, is.Err, e.action, bytes)
		}
	}
	if len(told) != count {
		c.t.Errorf("%s the %s is told of %d entries, not %d", when, side, len(told), count)
	}
}

// mustCount expects a summary with the numbers of the model.
func (c *treeChecker) mustCount(when string, side wire.Side, got *job.TreeSummary) {
	c.t.Helper()
	var want job.TreeSummary
	for _, e := range c.model.entries {
		done := job.FileDone{Path: e.path, Action: e.action, Bytes: int64(len(e.is.text))}
		switch {
		case e.first != "":
			done.Kind = wire.EntryHardLink
		case e.isDirectory():
			done.Kind = wire.EntryDirectory
		case e.is.mode == fs.ModeSymlink:
			done.Kind = wire.EntrySymlink
		default:
			done.Kind = wire.EntryFile
		}
		if e.action != job.Skipped || side == c.model.Sender {
			want.Add(done)
		}
	}
	if got == nil {
		c.t.Errorf("%s the %s has no summary of its tree", when, side)
		return
	}
	is := *got
	is.Failures, want.Failures = nil, nil
	if !equalSummaries(is, want) {
		c.t.Errorf("%s the %s counts %+v, not %+v", when, side, is, want)
	}
}

func equalSummaries(a, b job.TreeSummary) bool {
	return a.Files == b.Files && a.Directories == b.Directories && a.Symlinks == b.Symlinks &&
		a.HardLinks == b.HardLinks && a.Unchanged == b.Unchanged && a.Updated == b.Updated && a.Skipped == b.Skipped &&
		a.Failed == b.Failed && a.Existing == b.Existing && a.Bytes == b.Bytes
}

// judge checks what holds for any fault.
func (c *treeChecker) judge(e results) {
	c.t.Helper()
	c.untidy = c.untidy || c.last.dead[c.Sender.Other()].Load() || c.fault.Kind == diskFails
	c.entries(e)
	c.agreement(e)
	if names := c.list(c.Sender); len(names) != 1 {
		c.t.Errorf("the sender is left with %q", names)
	}
}

// entries checks that each final name has the old content or the new, and that what the sides were told is true.
func (c *treeChecker) entries(e results) {
	c.t.Helper()
	got, before := c.target(), c.before()
	for name, is := range got {
		was, existed := c.old[name]
		_, leftBefore := before[name] // of a file that has become so small that it is not resumed
		switch {
		case existed && was.same(is), c.isNew(name, is), c.isBackup(name, is):
		case isTemporary(name):
			if e.errs[c.Sender.Other()] == nil && !c.untidy && !leftBefore {
				c.t.Errorf("%s is left, and the receiver says that all is well", name)
			}
		default:
			c.t.Errorf("%s has %d bytes, neither the old nor the new content", name, len(is.text))
		}
	}
	for name := range before {
		if _, found := got[name]; !found && !isTemporary(name) {
			c.t.Errorf("%s has gone", name)
		}
	}
	if c.readsOnly() && !maps.Equal(got, before) {
		c.t.Errorf("the target has changed, from %s to %s", before, got)
	}
	if c.fault.Kind == messageGarbled {
		return // a side may have been told of another entry
	}
	for side, err := range e.errs {
		c.isTold(wire.Side(side), e.done[side], got)
		if err == nil && !c.last.dead[side].Load() {
			c.allThere(wire.Side(side), got)
		}
	}
}

func (c *treeChecker) allThere(side wire.Side, got fileTree) {
	c.t.Helper()
	for _, e := range c.model.entries {
		if e.path != "" && !e.unsent && !c.readsOnly() && !c.isNew(e.path, got[e.path]) {
			c.t.Errorf("the %s says that all is well, and %s is not there", side, e.path)
		}
	}
}

// isTold checks what a side was told of each entry.
func (c *treeChecker) isTold(side wire.Side, told fileResults, got fileTree) {
	c.t.Helper()
	for name, is := range told {
		if name == "" {
			continue
		}
		here, found := got[name]
		switch is.Action {
		case job.Copied, job.Unchanged, job.Updated:
			if !found || !c.readsOnly() && !c.isNew(name, here) {
				c.t.Errorf("the %s says that %s is %s, and it is not there", side, name, is.Action)
			}
		case job.Failed:
			if is.Err == nil {
				c.t.Errorf("the %s does not say why %s has failed", side, name)
			}
		}
	}
}

// agreement is that both sides say the same, as far as they can know it.
func (c *treeChecker) agreement(e results) {
	c.t.Helper()
	sender := c.model.Sender
	sent, received := exit.Code(e.errs[sender]), exit.Code(e.errs[sender.Other()])
	complete := received == 0 || received == exit.SomeFailed
	foretold := slices.Contains(c.model.codes(), received)
	if (sent == 0) == (received == 0) && !e.native {
		return
	}
	switch c.fault.Kind {
	case crashed:
		switch survivor := exit.Code(e.errs[c.fault.Side.Other()]); {
		case survivor == exit.SomeFailed: // it has finished, as entries has seen
		case slices.Contains(c.model.codes(), survivor): // or found a difference before it lost its peer
		default:
			c.survivor(e)
		}
		return
	case messageGarbled:
		return
	case messageCut:
		if complete || sent == int(wire.AbortPeer) && received == int(wire.AbortProtocol) {
			return
		}
		if foretold && sent == int(wire.AbortProtocol) {
			return // while the receiver found a difference
		}
	case connectionLost, peerSilent:
		if (complete || foretold) && sent == int(wire.AbortPeer) {
			return // the receiver has finished, or found a difference, and could not say so
		}
	case cancelled:
		if (complete || foretold) && c.fault.Side == sender && sent == int(wire.AbortInterrupted) {
			return
		}
	}
	if sent != received {
		c.t.Errorf("the sender says %d (%v), and the receiver %d (%v)",
			sent, e.errs[sender], received, e.errs[sender.Other()])
		return
	}
	if complete {
		c.sameOutcomes(e)
	}
}

// sameOutcomes checks that both sides of a complete transfer were told the same of each entry. A directory may fail
// after it has been reported.
func (c *treeChecker) sameOutcomes(e results) {
	c.t.Helper()
	sender := c.model.Sender
	sent, received := e.done[sender], e.done[sender.Other()]
	for name, is := range received {
		if other, found := sent[name]; !found || other.Action != is.Action && is.Kind != wire.EntryDirectory {
			c.t.Errorf("%s is %s for the receiver, and %s (%t) for the sender", name, is.Action, other.Action, found)
		}
	}
	for name, is := range sent {
		if _, found := received[name]; !found && is.Action != job.Failed && is.Action != job.Skipped {
			c.t.Errorf("%s is %s for the sender, and the receiver was not told", name, is.Action)
		}
	}
}

// removeEmpty removes a new root that was created by a call which reported that it failed.
func (c *treeChecker) removeEmpty() {
	got := c.target()
	if c.fault.Kind != diskFails || !c.fault.Done || c.Overwrite || c.IgnoreExisting || got == nil || len(got) > 0 {
		return
	}
	dir, err := c.disks[c.Sender.Other()].OpenDir(path.Dir(simTree))
	must(c.t, err)
	defer dir.Close()
	err = dir.RemoveDir(path.Base(simTree))
	if !errors.Is(err, fs.ErrNotExist) {
		must(c.t, err)
	}
}
