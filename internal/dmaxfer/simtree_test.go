package dmaxfer

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// TestTreeSimulation is TestSimulation for directories. What each attempt does is foretold by a model of the file
// systems: the entries of the target with their attributes, the events and the summaries of both sides, and the exit
// codes. A scenario with limits, or a dry run, is carried out again without these.
func TestTreeSimulation(t *testing.T) {
	first, last := *simFirst, *simFirst+*simSeeds-1
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulateTree(t, seed) })
	}
}

func simulateTree(t *testing.T, seed uint64) {
	t.Helper()
	sc, random := newTreeScenario(seed)
	c := newTreeChecker(t, sc)
	defer c.report("TestTreeSimulation")
	clean := c.withoutFaults(random)
	if t.Failed() || c.model.compares && c.model.differs() {
		return
	}
	c.new = nil
	c.MaxBytes, c.MaxEntries, c.FailFast = [2]int64{}, [2]int64{}, false
	disks := sc.newDisks()
	for range 1 + random.IntN(3) {
		c.fault = newFault(random, sc, clean.steps)
		e := c.attempt(disks, c.fault)
		changed := c.last.changed
		if changed != "" {
			c.noteChange(changed)
		}
		c.judge(e)
		if t.Failed() || e.errs == [2]error{} {
			return
		}
		c.removeEmpty()
		if changed != "" {
			putFile(disks[sc.Sender], path.Join(simTree, changed), sc.Tree[changed])
		}
	}
	c.Corruption, c.DryRun = 0, false
	c.mustSucceed("after the fault", c.attempt(disks, fault{}))
}

// withoutFaults has attempts without a fault: one as the scenario says, one without limits, and perhaps another one,
// which has nothing to do. It returns the results of the first.
func (c *treeChecker) withoutFaults(random *rand.Rand) results {
	c.t.Helper()
	of := c.scenario
	disks := c.newDisks()
	clean := c.attempt(disks, fault{})
	c.mustSucceed("without faults", clean)
	if c.t.Failed() {
		return clean
	}
	c.MaxBytes, c.MaxEntries, c.FailFast, c.DryRun = [2]int64{}, [2]int64{}, false, false
	if of.limited() {
		c.mustSucceed("without limits", c.attempt(disks, fault{}))
	}
	if !c.t.Failed() && random.IntN(3) == 0 {
		c.mustSucceed("repeated", c.attempt(disks, fault{}))
	}
	c.scenario = of
	return clean
}

// limited reports whether an attempt may copy less than everything.
func (sc *scenario) limited() bool {
	return sc.DryRun || sc.FailFast || sc.MaxBytes != [2]int64{} || sc.MaxEntries != [2]int64{}
}

// noteChange accepts what a file of the source has become, wherever it is sent to.
func (c *treeChecker) noteChange(changed string) {
	now := treeAt(c.t, c.disks[c.Sender], simTree)[changed]
	for _, e := range c.model.entries {
		if e.of == changed && !c.readsOnly() {
			c.accept(e.path, now)
		}
	}
}

// newTreeScenario adds what is special about trees to a scenario.
func newTreeScenario(seed uint64) (scenario, *rand.Rand) {
	sc, random := newScenario(seed)
	yes := func(percent int) bool { return random.IntN(100) < percent }
	sc.FromStream, sc.ToStream = false, false
	sc.Tree = newTree(random, sc.Chunk)
	if yes(30) {
		sc.Linked, sc.HardLinks = sc.Tree.linkSome(random), yes(70)
	}
	sc.Links = pick(random, tree.LinksCopy, tree.LinksCopy, tree.LinksFollow, tree.LinksSkip)
	if yes(25) {
		sc.Rules = newRules(random, sc.Tree)
	}
	if yes(15) {
		sc.Only = newList(random, sc.Tree)
	}
	sc.Asks = pick(random, wire.Host, wire.DPU)
	sc.Checksum, sc.DryRun, sc.FailFast = yes(20), yes(10), yes(15)
	if yes(10) {
		sc.MaxEntries[random.IntN(2)] = 1 + random.Int64N(int64(len(sc.Tree))+2)
	}
	if yes(10) {
		sc.MaxBytes[random.IntN(2)] = 1 + random.Int64N(20*sc.Chunk)
	}
	switch {
	case sc.Overwrite:
		sc.OldTree = sc.Tree.older(random, sc.Chunk)
		sc.OldLinked = keptLinks(sc.Linked, sc.OldTree)
	case yes(8):
		sc.OldTree = sc.Tree.other(random)
		sc.OldLinked = keptLinks(sc.Linked, sc.OldTree)
	}
	if sc.Overwrite && seed%4 == 0 {
		sc.IgnoreExisting, sc.Overwrite, sc.Backup = true, false, false
	}
	return sc, random
}

// keptLinks returns the hard links whose files are the same in an older tree.
func keptLinks(linked map[string]string, old fileTree) map[string]string {
	kept := maps.Clone(linked)
	maps.DeleteFunc(kept, func(name, first string) bool {
		return !old[name].mode.IsRegular() || old[name] != old[first] || old[name].perm == 0
	})
	return kept
}

// other returns a tree to compare with: the same, or one that differs a little.
func (t fileTree) other(random *rand.Rand) fileTree {
	other := maps.Clone(t)
	var files []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name].mode == 0 || t[name].mode == fs.ModeSymlink {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return other
	}
	name := pick(random, files...)
	e := other[name]
	switch random.IntN(8) {
	case 0:
		delete(other, name)
	case 1:
		e.text += "x"
		other[name] = e
	case 2:
		other[name+"x"] = treeEntry{text: "extra"}
	case 3:
		e.modified.Sec++
		other[name] = e
	}
	return other
}

// newRules returns patterns that match some entries of a tree.
func newRules(random *rand.Rand, of fileTree) (rules []rule) {
	for range 1 + random.IntN(3) {
		at := "none"
		if len(of) > 0 {
			at = pick(random, slices.Sorted(maps.Keys(of))...)
		}
		rules = append(rules, newRule(random, at))
	}
	return rules
}

// newRule returns a pattern that matches the entry at a path, and perhaps others.
func newRule(random *rand.Rand, like string) rule {
	r := rule{Rule: tree.Rule{Include: random.IntN(3) == 0}}
	name := path.Base(like)
	switch random.IntN(6) {
	case 0:
		r.Pattern, r.matches = name, func(at string, _ bool) bool { return path.Base(at) == name }
	case 1:
		r.Pattern = name + "/"
		r.matches = func(at string, isDirectory bool) bool { return isDirectory && path.Base(at) == name }
	case 2:
		r.Pattern, r.matches = "/"+like, func(at string, _ bool) bool { return at == like }
	case 3:
		r.Pattern = "/" + like + "/**"
		r.matches = func(at string, _ bool) bool { return strings.HasPrefix(at, like+"/") }
	case 4:
		r.Pattern = name[:1] + "*"
		r.matches = func(at string, _ bool) bool { return path.Base(at)[0] == name[0] }
	default:
		r.Pattern = "**/" + name
		r.matches = func(at string, _ bool) bool { return path.Base(at) == name }
	}
	return r
}

// newList returns some paths of a tree, and one that it does not have.
func newList(random *rand.Rand, of fileTree) []string {
	paths := []string{}
	for _, at := range slices.Sorted(maps.Keys(of)) {
		if random.IntN(2) == 0 {
			paths = append(paths, at)
		}
		if random.IntN(20) == 0 {
			paths = append(paths, at+"/below")
		}
	}
	if random.IntN(3) == 0 {
		paths = append(paths, "missing")
	}
	return paths
}
