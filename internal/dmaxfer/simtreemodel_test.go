package dmaxfer

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// treeModel is what a transfer without faults does, given what both sides have. It shares no code with the program.
type treeModel struct {
	*scenario
	source, target fileTree // target is nil if there is none
	compares       bool     // both sides have the tree, and neither may be changed
	selects        bool     // the sender selects entries, otherwise the other side of a comparison does
	entries        []*modelEntry
	own            map[string]*modelEntry // in a comparison, what the receiver would send, by path
}

// modelEntry is an entry of the source, and what becomes of it.
type modelEntry struct {
	path   string
	of     string    // path in the source of what is sent: that of a symlink that is followed leads to another one
	is     treeEntry // there
	first  string    // of a hard link: the path that is linked to
	action job.Action
	code   wire.AbortCode // of a failure
	unsent bool           // the receiver does not learn of it
	want   treeEntry      // content of the target afterwards, unless it fails
	keeps  bool           // the file of the target is kept with its attributes, because the digests agree
}

// isDirectory reports whether a directory is sent.
func (e *modelEntry) isDirectory() bool { return e.is.mode == fs.ModeDir }

// foretell returns the model of a transfer. The sender of the scenario selects entries; in a comparison it may be the
// host that sends all of its own.
func foretell(sc scenario, source, target fileTree, compares bool) *treeModel {
	m := &treeModel{scenario: &sc, source: source, target: target, compares: compares}
	selects := sc.Sender
	if compares {
		sc.Sender = wire.Host
	}
	m.selects = selects == sc.Sender
	m.entries = m.list(source, m.selects)
	if compares {
		m.own = map[string]*modelEntry{}
		for _, e := range m.list(target, !m.selects) {
			m.own[e.path] = e
		}
	}
	m.decide()
	return m
}

// list returns what a sender finds in a tree, in order.
func (m *treeModel) list(of fileTree, selects bool) []*modelEntry {
	l := &lister{scenario: *m.scenario, of: of, first: map[uint64]string{}}
	if !selects {
		l.Links, l.Only, l.Rules = tree.LinksCopy, nil, nil
	}
	l.found = append(l.found, &modelEntry{is: treeEntry{mode: fs.ModeDir}})
	l.directory("", "", []string{""})
	return l.found
}

// lister walks a tree.
type lister struct {
	scenario
	of    fileTree
	found []*modelEntry
	first map[uint64]string // path of the first entry of a file that has several names
}

// directory lists what is in the directory of, whose entries are sent below at; inside are the directories above it.
func (l *lister) directory(at, of string, inside []string) {
	names := l.of.children(of)
	if l.Only != nil {
		names = l.listed(at)
	}
	for _, name := range names {
		l.entry(path.Join(at, name), path.Join(of, name), inside)
	}
}

// listed returns the names in a directory that the list of files has, or below which it has something.
func (l *lister) listed(in string) (names []string) {
	for _, at := range l.Only {
		if below, is := strings.CutPrefix("/"+at, strings.TrimSuffix("/"+in, "/")+"/"); is {
			name, _, _ := strings.Cut(below, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (l *lister) entry(at, of string, inside []string) {
	is, exists := l.of[of]
	if l.excludes(at, is.mode == fs.ModeDir) {
		return
	}
	if !exists {
		l.fails(at)
		return
	}
	if is.mode == fs.ModeSymlink && l.Links == tree.LinksSkip {
		return
	}
	if is.mode == fs.ModeSymlink && l.Links == tree.LinksFollow {
		to, found := l.of.resolve(parent(of), is.text)
		if !found {
			l.fails(at)
			return
		}
		of, is = to, l.of[to]
		if to == "" {
			is.mode = fs.ModeDir
		}
	}
	switch {
	case is.mode == fs.ModeDir && l.Links == tree.LinksFollow && slices.Contains(inside, of):
		l.fails(at)
	case is.mode == fs.ModeDir:
		l.found = append(l.found, &modelEntry{path: at, of: of, is: is})
		l.directory(at, of, append(slices.Clone(inside), of))
	case is.mode == fs.ModeNamedPipe:
		l.found = append(l.found, &modelEntry{path: at, of: of, is: is, action: job.Skipped, unsent: true})
	case l.Only != nil && len(l.listed(at)) > 0: // something is listed below what is no directory
		l.fails(at)
	default:
		e := &modelEntry{path: at, of: of, is: is}
		if is.mode == 0 && is.links > 1 && l.HardLinks {
			if e.first = l.first[is.inode]; e.first == "" {
				l.first[is.inode] = at
			}
		}
		l.found = append(l.found, e)
	}
}

func (l *lister) fails(at string) {
	l.found = append(l.found, &modelEntry{path: at, action: job.Failed, code: wire.AbortSource, unsent: true})
}

// resolve returns what a symlink in a directory leads to; found is false if that is not in the tree.
func (t fileTree) resolve(in, text string) (to string, found bool) {
	const most = 40 // symlinks one after the other
	for todo, links := text, 0; ; {
		if strings.HasPrefix(todo, "/") || links > most {
			return "", false
		}
		name, rest, more := strings.Cut(todo, "/")
		is, exists := t[path.Join(in, name)]
		switch {
		case name == "" && !more:
			return in, true
		case name == "" || name == ".":
		case name == ".." && in == "":
			return "", false
		case name == "..":
			in = parent(in)
		case !exists:
			return "", false
		case is.mode == fs.ModeDir:
			in = path.Join(in, name)
		case is.mode == fs.ModeSymlink:
			links++
			if more {
				rest = "/" + rest
			}
			rest = is.text + rest
		case more:
			return "", false
		default:
			return path.Join(in, name), true
		}
		todo = rest
	}
}

// excludes reports whether the patterns exclude an entry: the first that matches decides.
func (sc *scenario) excludes(at string, isDirectory bool) bool {
	for _, r := range sc.Rules {
		if r.matches(at, isDirectory) {
			return !r.Include
		}
	}
	return false
}

// decide sets what the receiver does with the entries.
func (m *treeModel) decide() {
	failed := map[string]bool{}
	by := map[string]*modelEntry{}
	for _, e := range m.entries {
		if e.unsent {
			continue
		}
		by[e.path], e.want = e, e.is
		was, existed := m.found(e)
		switch {
		case e.path == "":
			existed = m.target != nil
			e.action = m.copies(!existed)
		case failed[parent(e.path)]:
			e.fail()
		case m.IgnoreExisting && existed && !e.isDirectory():
			e.action, e.want = job.Existing, was
		case m.cannotCompare(e):
			e.action, e.code = job.Failed, wire.AbortSource
		case existed && e.isDirectory() != (was.mode == fs.ModeDir):
			e.fail() // something is in the way
		case e.isDirectory():
			e.action = m.copies(!existed)
		case e.first != "":
			m.decideLink(e, by[e.first], was)
		case e.is.mode == fs.ModeSymlink:
			e.action = m.copies(!was.same(e.is))
		default:
			m.decideFile(e, was, existed)
		}
		failed[e.path] = e.action == job.Failed
	}
}

// decideFile decides about a regular file. One that may be replaced gets the attributes of the source at least.
func (m *treeModel) decideFile(e *modelEntry, was treeEntry, existed bool) {
	switch {
	case existed && m.updates(e, was):
		e.action = job.ActionOfHave(native.ChangeTime, m.DryRun)
	case existed && m.unchanged(e, was):
		e.action, e.keeps = job.Unchanged, m.Checksum
	default:
		e.action = m.copies(true)
	}
}

// updates reports whether only attributes of a file are set: its content is the same, and with equal times taken for
// it. A file with other names, or other extended attributes, is copied.
func (m *treeModel) updates(e *modelEntry, was treeEntry) bool {
	sameSize := was.mode == 0 && len(was.text) == len(e.is.text)
	if !m.Overwrite || m.compares || !sameSize || was.links > 1 || m.Xattrs && was.xattr != e.is.xattr {
		return false
	}
	if was.modified == e.is.modified && was.perm == e.is.perm {
		return false
	}
	if was.modified == e.is.modified && !m.Checksum {
		e.want.text = was.text
		return true
	}
	return was.same(e.is)
}

// found returns what the receiver has at the path of an entry. In a comparison it takes a symlink that it would follow
// for what that leads to, unless a symlink is sent.
func (m *treeModel) found(e *modelEntry) (was treeEntry, exists bool) {
	if own := m.own[e.path]; own != nil && e.is.mode != fs.ModeSymlink {
		return own.is, true
	}
	was, exists = m.target[e.path]
	return was, exists
}

// cannotCompare reports whether the receiver of a comparison could not send what it has at the path of an entry.
func (m *treeModel) cannotCompare(e *modelEntry) bool {
	own := m.own[e.path]
	return own != nil && own.action == job.Failed && e.is.mode != fs.ModeSymlink
}

// decideLink decides about a hard link to an earlier file.
func (m *treeModel) decideLink(e, first *modelEntry, was treeEntry) {
	e.want, e.keeps = first.want, first.keeps
	firstWas, _ := m.found(first)
	same := was.isFile() && was.inode == firstWas.inode && first.action == job.Unchanged
	if e.action = m.copies(!same); first.action == job.Failed || first.action == job.Existing {
		e.fail()
	}
}

func (e *modelEntry) fail() { e.action, e.code = job.Failed, wire.AbortTarget }

// copies returns the action for an entry that the target needs or not.
func (m *treeModel) copies(needed bool) job.Action {
	switch {
	case !needed:
		return job.Unchanged
	case m.DryRun:
		return job.WouldCopy
	default:
		return job.Copied
	}
}

// unchanged reports whether a file is taken for what the target has.
func (m *treeModel) unchanged(e *modelEntry, was treeEntry) bool {
	quick := was.mode == 0 && len(was.text) == len(e.is.text) && was.modified == e.is.modified &&
		was.perm == e.is.perm && (!m.Xattrs || was.xattr == e.is.xattr)
	if m.Checksum || m.compares && !quick {
		return was.same(e.is) && (quick || !m.Overwrite)
	}
	if quick {
		e.want = was
	}
	return quick
}

// differs reports whether a comparison finds a difference: something that is sent, or that the receiver would send.
func (m *treeModel) differs() bool {
	own := map[string]bool{}
	for _, e := range m.own {
		own[e.path] = e.action != job.Skipped
	}
	failed := map[string]bool{}
	for _, e := range m.entries {
		failed[e.path] = m.cannotCompare(e) || e.path != "" && failed[parent(e.path)] ||
			e.first != "" && failed[e.first]
		if !e.unsent && e.action != job.Unchanged && !failed[e.path] {
			return true
		}
		own[e.path] = own[e.path] && e.unsent
	}
	for _, only := range own {
		if only {
			return true
		}
	}
	return false
}

// codes returns what both sides may end with. If there are several, they may end with different ones.
func (m *treeModel) codes() []int {
	var codes []int
	if m.compares && m.differs() {
		codes = append(codes, int(wire.AbortSource))
	}
	if m.exceeds() {
		codes = append(codes, int(wire.AbortLimit))
	}
	failed := false
	for _, e := range m.entries {
		if e.action != job.Failed {
			continue
		}
		if failed = true; m.FailFast && !slices.Contains(codes, int(e.code)) {
			codes = append(codes, int(e.code))
		}
	}
	switch {
	case len(codes) > 0:
		return codes
	case failed:
		return []int{exit.SomeFailed}
	default:
		return []int{0}
	}
}

// exceeds reports whether the transfer is beyond the limits of a side. Those of the sender count what it cannot send.
func (m *treeModel) exceeds() bool {
	bytes, counts := int64(0), [2]int64{}
	receiver := m.Sender.Other()
	for _, e := range m.entries {
		if e.action == job.Skipped {
			continue
		}
		counts[m.Sender]++
		if e.unsent {
			continue
		}
		counts[receiver]++
		if e.is.mode == 0 && e.first == "" {
			bytes += int64(len(e.is.text))
		}
	}
	for side := range counts {
		if limit := m.MaxBytes[side]; limit > 0 && bytes > limit {
			return true
		}
		if limit := m.MaxEntries[side]; limit > 0 && counts[side] > limit {
			return true
		}
	}
	return false
}

// rule is a pattern that includes or excludes entries, and what it matches.
type rule struct {
	tree.Rule
	matches func(at string, isDirectory bool) bool
}

// String is for the report of a failed seed.
func (r rule) String() string {
	if r.Include {
		return "+" + r.Pattern
	}
	return "-" + r.Pattern
}
