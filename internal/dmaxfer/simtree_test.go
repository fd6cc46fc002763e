package dmaxfer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// simTree is where the two sides of a simulation have their directories.
const simTree = "/files/tree"

// fileTree is the content of a directory by path, relative to it.
type fileTree map[string]treeEntry

// treeEntry is a file, unless mode says that it is a directory or a symlink.
type treeEntry struct {
	mode fs.FileMode // type bits
	text string      // of a file, or of a symlink
}

// newTree has directories, some of them empty, files of sizes around that of a chunk, and symlinks.
func newTree(random *rand.Rand, chunk int64) fileTree {
	tree, directories := fileTree{}, []string{""}
	for i := range random.IntN(14) {
		in := pick(random, directories...)
		name := path.Join(in, fmt.Sprintf("%c%d", 'a'+random.IntN(3), i))
		switch random.IntN(6) {
		case 0:
			tree[name] = treeEntry{mode: fs.ModeDir}
			directories = append(directories, name)
		case 1:
			tree[name] = treeEntry{mode: fs.ModeSymlink, text: pick(random, "a", "../elsewhere", "/absolute")}
		default:
			tree[name] = treeEntry{text: noise(random, treeFileSize(random, chunk), random.IntN(8) == 0)}
		}
	}
	return tree
}

func treeFileSize(random *rand.Rand, chunk int64) int64 {
	return pick(random, 0, 1, 100, random.Int64N(chunk), chunk-1, chunk, chunk+1, 1+random.Int64N(5*chunk))
}

// olderTree is what a target may have of a tree: some entries as they are, some with another content, and others.
func (t fileTree) older(random *rand.Rand, chunk int64) fileTree {
	old := fileTree{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if in := path.Dir(name); in != "." && old[in].mode != fs.ModeDir {
			continue
		}
		switch e := t[name]; random.IntN(10) {
		case 0, 1, 2:
			old[name] = e
		case 3:
			if e.mode == fs.ModeDir { // the source has a directory where the target has a file
				old[name] = treeEntry{text: "in the way"}
			}
		case 4, 5, 6:
			if e.mode == 0 {
				e.text = noise(random, treeFileSize(random, chunk), false)
			} else if e.mode == fs.ModeSymlink {
				e.text += "/older"
			}
			old[name] = e
		}
	}
	old["extra"] = treeEntry{text: "is not in the source"}
	return old
}

// linkSome makes some files hard links of the first one, and returns their names with that of the first.
func (t fileTree) linkSome(random *rand.Rand) map[string]string {
	linked, first := map[string]string{}, ""
	for _, name := range slices.Sorted(maps.Keys(t)) {
		switch {
		case t[name].mode != 0:
		case first == "":
			first = name
		case random.IntN(4) == 0:
			t[name], linked[name] = t[first], first
		}
	}
	return linked
}

// putTree makes a directory with that content.
func putTree(on *disktest.Memory, at string, tree fileTree, linked map[string]string) {
	makeDirectory(on, at)
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		switch e := tree[name]; {
		case linked[name] != "":
			on.Link(path.Join(at, linked[name]), path.Join(at, name))
		case e.mode == fs.ModeDir:
			makeDirectory(on, path.Join(at, name))
		case e.mode == fs.ModeSymlink:
			on.Symlink(e.text, path.Join(at, name), on.Self().UID)
		default:
			putFile(on, path.Join(at, name), e.text)
		}
	}
}

// putFile writes a file, and leaves whole pages of zeros out.
func putFile(on *disktest.Memory, at, text string) {
	on.Put(at, "")
	dir, err := on.OpenDir(path.Dir(at))
	if err != nil {
		panic(err)
	}
	defer dir.Close()
	fillSparse(dir, path.Base(at), text)
}

func makeDirectory(on *disktest.Memory, at string) {
	dir, err := on.OpenDir(path.Dir(at))
	if err != nil {
		panic(err)
	}
	defer dir.Close()
	if err := dir.MakeDir(path.Base(at), 0o755); err != nil {
		panic(err)
	}
}

// treeAt returns the content of a directory; nil if there is none.
func treeAt(t *testing.T, on *disktest.Memory, at string) fileTree {
	t.Helper()
	dir, err := on.OpenDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	defer dir.Close()
	names, err := dir.Names()
	must(t, err)
	tree := fileTree{}
	for _, name := range names {
		info, err := dir.Stat(name)
		must(t, err)
		e := treeEntry{mode: info.Mode.Type()}
		switch e.mode {
		case fs.ModeDir:
			for below, found := range treeAt(t, on, path.Join(at, name)) {
				tree[path.Join(name, below)] = found
			}
		case fs.ModeSymlink:
			link, err := dir.ReadLink(name)
			must(t, err)
			e.text = link.Text
		default:
			e.text, _ = on.Get(path.Join(at, name))
		}
		tree[name] = e
	}
	return tree
}

// treeChecker holds the attempts of one seed to what is promised of trees.
type treeChecker struct {
	*checker
	old      fileTree            // of the target, before
	contents map[string][]string // of files that have changed
}

// isTemporary reports whether a side that is stopped may leave a file of this name.
func isTemporary(name string) bool {
	return disk.IsLeftover(path.Base(name)) || strings.HasSuffix(name, ".dma-copy-new")
}

// outcomes are what a side was told of the entries of a tree, by path.
type outcomes map[string]job.FileDone

// target returns what the receiver has.
func (c *treeChecker) target() fileTree {
	c.t.Helper()
	return treeAt(c.t, c.disks[c.Sender.Other()], simTree)
}

// isNew reports whether an entry has a content of the source.
func (c *treeChecker) isNew(name string, got treeEntry) bool {
	want, of := c.Tree[name]
	return of && want.mode == got.mode && (want.text == got.text || slices.Contains(c.contents[name], got.text))
}

// blocked reports whether an entry cannot be created, because the target has a file in place of its directory, or of
// that of the file which it is a hard link of.
func (c *treeChecker) blocked(name string) bool {
	if first := c.Linked[name]; first != "" && c.HardLinks && c.blocked(first) {
		return true
	}
	for ; name != "."; name = path.Dir(name) {
		if was, existed := c.old[name]; existed && was.mode != fs.ModeDir && c.Tree[name].mode == fs.ModeDir {
			return true
		}
	}
	return false
}

// anyBlocked reports whether the transfer cannot be complete.
func (c *treeChecker) anyBlocked() bool {
	for name := range c.Tree {
		if c.blocked(name) {
			return true
		}
	}
	return false
}

// mustSucceed expects the whole source, what else there was, and nothing besides.
func (c *treeChecker) mustSucceed(when string, e results) {
	c.t.Helper()
	want := 0
	if c.anyBlocked() {
		want = int(someFailed)
	}
	for side, err := range e.errs {
		if code(err) != want {
			c.t.Errorf("%s the %s says %v, not %d", when, negotiate.Side(side), err, want)
		}
	}
	got := c.target()
	for name := range c.Tree {
		if !c.isNew(name, got[name]) && !c.blocked(name) {
			c.t.Errorf("%s %s is not that of the source", when, name)
		}
	}
	for name, first := range c.Linked {
		if c.HardLinks && !c.blocked(name) && !c.blocked(first) && !c.sameFile(name, first) {
			c.t.Errorf("%s %s and %s are different files", when, name, first)
		}
	}
	for name := range got {
		_, kept := c.old[name]
		if !kept && !c.isNew(name, got[name]) && !(c.untidy && isTemporary(name)) {
			c.t.Errorf("%s %s is left over", when, name)
		}
	}
	for _, name := range c.list(c.Sender.Other()) {
		if name != "tree" && !(want != 0 && isTemporary(name)) {
			c.t.Errorf("%s the receiver is left with %q", when, name)
		}
	}
}

// sameFile reports whether the target has the same file under two names.
func (c *treeChecker) sameFile(name, other string) bool {
	one, err := c.disks[c.Sender.Other()].Stat(path.Join(simTree, name))
	two, otherErr := c.disks[c.Sender.Other()].Stat(path.Join(simTree, other))
	return err == nil && otherErr == nil && one.SameFile(two.Identity)
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
	got := c.target()
	for name, is := range got {
		was, existed := c.old[name]
		switch {
		case c.isNew(name, is), existed && was == is:
		case isTemporary(name):
			if e.errs[c.Sender.Other()] == nil && !c.untidy {
				c.t.Errorf("%s is left, and the receiver says that all is well", name)
			}
		default:
			c.t.Errorf("%s has %d bytes, neither the old nor the new content", name, len(is.text))
		}
	}
	for name := range c.old {
		if _, found := got[name]; !found {
			c.t.Errorf("%s has gone", name)
		}
	}
	if c.fault.Kind == messageGarbled {
		return // a side may have been told of another entry
	}
	for side, err := range e.errs {
		c.isTold(negotiate.Side(side), e.done[side], got)
		if err == nil && !c.last.dead[side].Load() {
			c.allThere(negotiate.Side(side), got)
		}
	}
}

func (c *treeChecker) allThere(side negotiate.Side, got fileTree) {
	c.t.Helper()
	for name := range c.Tree {
		if !c.isNew(name, got[name]) {
			c.t.Errorf("the %s says that all is well, and %s is not there", side, name)
		}
	}
}

// isTold checks what a side was told of each entry.
func (c *treeChecker) isTold(side negotiate.Side, told outcomes, got fileTree) {
	c.t.Helper()
	for name, is := range told {
		if name == "" {
			continue
		}
		here, found := got[name]
		switch is.Action {
		case job.Copied, job.Unchanged:
			if !found || !c.isNew(name, here) {
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
	sender := c.sentBy(e)
	sent, received := code(e.errs[sender]), code(e.errs[sender.Other()])
	complete := received == 0 || received == int(someFailed)
	if (sent == 0) == (received == 0) && !e.native {
		return
	}
	switch c.fault.Kind {
	case crashed:
		c.survivor(e)
		return
	case messageGarbled:
		return
	case messageCut:
		if complete || sent == int(negotiate.AbortPeer) && received == int(negotiate.AbortProtocol) {
			return
		}
	case connectionLost, peerSilent:
		if complete && sent == int(negotiate.AbortPeer) {
			return // the receiver has finished, and could not say so
		}
	case cancelled:
		if complete && c.fault.Side == sender && sent == int(negotiate.AbortInterrupted) {
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

// sentBy returns the side that has sent: if both have the tree already, and only compare, that is the host.
func (c *treeChecker) sentBy(e results) negotiate.Side {
	for side, told := range e.told {
		if told.Sent {
			return negotiate.Side(side)
		}
	}
	return c.Sender
}

// sameOutcomes checks that both sides of a complete transfer were told the same of each entry.
func (c *treeChecker) sameOutcomes(e results) {
	c.t.Helper()
	sender := c.sentBy(e)
	sent, received := e.done[sender], e.done[sender.Other()]
	for name, is := range received {
		if other, found := sent[name]; !found || other.Action != is.Action && is.Kind != negotiate.EntryDirectory {
			c.t.Errorf("%s is %s for the receiver, and %s (%t) for the sender", name, is.Action, other.Action, found)
		}
	}
	for name, is := range sent {
		if _, found := received[name]; !found && is.Action != job.Failed {
			c.t.Errorf("%s is %s for the sender, and the receiver was not told", name, is.Action)
		}
	}
}

// removeEmpty removes a new root that was created by a call which reported that it failed.
func (c *treeChecker) removeEmpty() {
	got := c.target()
	if c.fault.Kind != diskFails || !c.fault.Done || c.Overwrite || got == nil || len(got) > 0 {
		return
	}
	dir, err := c.disks[c.Sender.Other()].OpenDir(path.Dir(simTree))
	must(c.t, err)
	defer dir.Close()
	must(c.t, dir.RemoveDir(path.Base(simTree)))
}

// simulateTree is simulate for a directory.
func simulateTree(t *testing.T, seed uint64) {
	t.Helper()
	sc, random := newTreeScenario(seed)
	c := &treeChecker{checker: &checker{scenario: sc, t: t}, old: sc.OldTree, contents: map[string][]string{}}
	defer c.report("TestTreeSimulation")
	clean := c.attempt(sc.newDisks(), fault{})
	c.mustSucceed("without faults", clean)
	c.sameOutcomes(clean)
	if t.Failed() {
		return
	}
	disks := sc.newDisks()
	for range 1 + random.IntN(3) {
		c.fault = newFault(random, sc, clean.steps)
		e := c.attempt(disks, c.fault)
		if name := c.last.changed; name != "" {
			text, _ := disks[sc.Sender].Get(path.Join(simTree, name))
			c.contents[name] = append(c.contents[name], text)
		}
		c.judge(e)
		if t.Failed() || e.errs == [2]error{} {
			return
		}
		c.removeEmpty()
		if name := c.last.changed; name != "" {
			putFile(disks[sc.Sender], path.Join(simTree, name), sc.Tree[name].text)
			c.contents[name] = nil
			if got := c.target()[name]; got.text != "" {
				c.contents[name] = []string{got.text} // until it is replaced
			}
		}
	}
	c.Corruption = 0
	after := c.attempt(disks, fault{})
	c.contents = map[string][]string{}
	c.mustSucceed("after the fault", after)
}

// TestTreeSimulation is TestSimulation for directories.
func TestTreeSimulation(t *testing.T) {
	first, last := *simFirst, *simFirst+*simSeeds-1
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulateTree(t, seed) })
	}
}

func newTreeScenario(seed uint64) (scenario, *rand.Rand) {
	sc, random := newScenario(seed)
	sc.FromStream, sc.ToStream, sc.Backup = false, false, false
	sc.Tree = newTree(random, sc.Chunk)
	if random.IntN(3) == 0 {
		sc.Linked, sc.HardLinks = sc.Tree.linkSome(random), random.IntN(3) > 0
	}
	sc.Checksum = random.IntN(5) == 0
	if sc.Overwrite {
		sc.OldTree = sc.Tree.older(random, sc.Chunk)
	} else {
		sc.FailFast = random.IntN(6) == 0
	}
	return sc, random
}

// describeTree is for the report of a failed seed.
func (t fileTree) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&text, " %s(%s %d)", name, t[name].mode, len(t[name].text))
	}
	return text.String()
}
