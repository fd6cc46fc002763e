package disktest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// change is an atomic change of names in one directory. A nil node is a removed name.
type change struct {
	what  string
	dir   *directory
	names map[string]*node
}

// snapshot is the state of a Memory after one operation.
type snapshot struct {
	op      string
	durable map[*directory]map[string]*node // names
	pending []change
	files   map[*node]versions
}

type versions struct{ now, durable *content }

// Record makes everything durable and starts recording for Crashes. Files should have few pages.
func (m *Memory) Record() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recording, m.snapshots = true, nil
	m.syncAll(func(uint64) bool { return true })
	m.step("start")
}

// Steps returns the number of recorded operations, including the start.
func (m *Memory) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.snapshots)
}

// rename changes names.
func (m *Memory) rename(what string, dir *directory, names map[string]*node) {
	for name, n := range names {
		if n == nil {
			delete(dir.now, name)
		} else {
			dir.now[name] = n
		}
	}
	if m.recording {
		m.pending = append(m.pending, change{what: what, dir: dir, names: names})
	}
	m.step(what)
}

func (m *Memory) makeDurable(dir *directory) {
	dir.durable = maps.Clone(dir.now)
	left := slices.Clone(m.pending) // snapshots hold the old one
	m.pending = slices.DeleteFunc(left, func(c change) bool { return c.dir == dir })
}

// syncAll makes everything on the given devices durable.
func (m *Memory) syncAll(on func(device uint64) bool) {
	for _, dir := range m.everMade {
		if !on(dir.device) {
			continue
		}
		m.makeDurable(dir)
		for _, n := range dir.now {
			n.durable, n.shared = n.now, true
		}
	}
	for n := range m.opened {
		if on(n.device) {
			n.durable, n.shared = n.now, true
		}
	}
}

// step records the state after an operation.
func (m *Memory) step(op string) {
	if !m.recording {
		return
	}
	at := snapshot{
		op:      op,
		durable: make(map[*directory]map[string]*node),
		pending: slices.Clone(m.pending),
		files:   make(map[*node]versions),
	}
	for _, dir := range m.everMade {
		at.durable[dir] = maps.Clone(dir.durable)
		for _, n := range dir.durable {
			at.add(n)
		}
	}
	for _, c := range m.pending {
		for _, n := range c.names {
			at.add(n)
		}
	}
	m.snapshots = append(m.snapshots, at)
}

// add records the versions of a file.
func (at *snapshot) add(n *node) {
	if n != nil {
		n.shared = true
		at.files[n] = versions{now: n.now, durable: n.durable}
	}
}

// Crash is one state that a loss of power can leave.
type Crash struct {
	Step int     // number of operations before; Steps()-1 is after the last
	What string  // for messages: the last operation, and which volatile changes survived
	FS   *Memory // the file system after the reboot
}

// Crashes returns the states that a loss of power can leave after each recorded operation. A directory's changes
// survive in every subset, each change completely and in any order; if there are many, in every prefix and every
// subset without one of them. Each file that was not flushed since its last change has, in any combination with other
// files: the old content, the new content, the new content with every other page old, or the new size without data.
func (m *Memory) Crashes() iter.Seq[Crash] {
	m.mu.Lock()
	snapshots := slices.Clone(m.snapshots)
	m.mu.Unlock()
	return func(yield func(Crash) bool) {
		for i := range snapshots {
			if !snapshots[i].crash(m, i, yield) {
				return
			}
		}
	}
}

// PowerLoss returns one of the states that a loss of power can leave now, after Record. below returns a random number
// from 0 to n-1.
func (m *Memory) PowerLoss(below func(n int) int) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.snapshots[len(m.snapshots)-1]
	survives := make([]bool, len(at.pending))
	for i := range survives {
		survives[i] = below(2) == 0
	}
	names, _ := at.names(survives)
	chosen := make(map[*node]*content)
	for _, n := range at.dirty(names) {
		chosen[n] = applyOutcome(below(len(outcomeNames)), at.files[n])
	}
	return at.reboot(m, names, chosen)
}

func (at *snapshot) crash(m *Memory, step int, yield func(Crash) bool) bool {
	for survivors := range subsets(len(at.pending)) {
		names, kept := at.names(survivors)
		dirty := at.dirty(names)
		for outcomes := range assignments(len(dirty), len(outcomeNames)) {
			what := fmt.Sprintf("after %q, names kept: %v", at.op, kept)
			chosen := make(map[*node]*content)
			for i, n := range dirty {
				chosen[n] = applyOutcome(outcomes[i], at.files[n])
				what += fmt.Sprintf(", data of %d %s", n.number, outcomeNames[outcomes[i]])
			}
			if !yield(Crash{Step: step, What: what, FS: at.reboot(m, names, chosen)}) {
				return false
			}
		}
	}
	return true
}

// names returns the directory entries if the given changes survive.
func (at *snapshot) names(survives []bool) (names map[*directory]map[string]*node, kept []string) {
	names = make(map[*directory]map[string]*node)
	for dir, durable := range at.durable {
		names[dir] = maps.Clone(durable)
	}
	for i, c := range at.pending {
		if !survives[i] {
			continue
		}
		kept = append(kept, c.what)
		for name, n := range c.names {
			if n == nil {
				delete(names[c.dir], name)
			} else {
				names[c.dir][name] = n
			}
		}
	}
	return names, kept
}

// dirty returns the named files with unflushed content, in the order of their creation.
func (at *snapshot) dirty(names map[*directory]map[string]*node) []*node {
	var found []*node
	for _, dir := range names {
		for _, n := range dir {
			if v := at.files[n]; v.now != v.durable && !slices.Contains(found, n) {
				found = append(found, n)
			}
		}
	}
	slices.SortFunc(found, func(a, b *node) int { return int(a.number) - int(b.number) })
	return found
}

var outcomeNames = [...]string{"lost", "kept", "torn", "zero"}

func applyOutcome(outcome int, v versions) *content {
	switch outcomeNames[outcome] {
	case "lost":
		return v.durable
	case "kept":
		return v.now
	}
	left := v.now.clone()
	for i := range left.pages {
		if outcomeNames[outcome] == "zero" || i%2 == 1 {
			delete(left.pages, i)
		}
		if old := v.durable.pages[i]; outcomeNames[outcome] == "torn" && i%2 == 1 && old != nil {
			left.pages[i] = old
		}
	}
	return left
}

// reboot returns a file system with the surviving names and content. A directory survives if its name does.
func (at *snapshot) reboot(m *Memory, names map[*directory]map[string]*node, chosen map[*node]*content) *Memory {
	made := NewMemory()
	made.self, made.clock, made.inodes = m.self, m.clock, m.inodes
	nodes := make(map[*node]*node)
	var restore func(dir *directory) *directory
	restore = func(dir *directory) *directory {
		if again := made.dirs[dir.path]; again != nil {
			return again
		}
		again := made.newDirectory(dir.path, dir.mode)
		again.uid, again.gid, again.number = dir.uid, dir.gid, dir.number
		again.device, again.root = dir.device, dir.root
		made.dirs[dir.path] = again
		for name, n := range names[dir] {
			if nodes[n] == nil {
				nodes[n] = at.survivor(n, chosen[n])
			}
			if n.dir != nil {
				nodes[n].dir = restore(n.dir)
			}
			again.now[name], again.durable[name] = nodes[n], nodes[n]
		}
		return again
	}
	for dir := range names {
		if dir.root {
			restore(dir)
		}
	}
	return made
}

// survivor returns a file after the reboot, with the given content, or with its current content if that is nil.
func (at *snapshot) survivor(n *node, left *content) *node {
	if left == nil {
		left = at.files[n].now
	}
	return &node{number: n.number, link: n.link, now: left, durable: left, shared: true, changed: n.changed}
}

// manyChanges is the number of changes up to which all subsets are tested.
const manyChanges = 7

func subsets(n int) iter.Seq[[]bool] {
	if n <= manyChanges {
		return func(yield func([]bool) bool) {
			for digits := range assignments(n, 2) {
				chosen := make([]bool, n)
				for i := range chosen {
					chosen[i] = digits[i] == 1
				}
				if !yield(chosen) {
					return
				}
			}
		}
	}
	return func(yield func([]bool) bool) {
		for i := range n {
			prefix, without := make([]bool, n), make([]bool, n)
			for j := range n {
				prefix[j], without[j] = j < i, j != i
			}
			if !yield(prefix) || !yield(without) {
				return
			}
		}
		yield(slices.Repeat([]bool{true}, n))
	}
}

// assignments returns all numbers of n digits in the given base.
func assignments(n, base int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		digits := make([]int, n)
		for {
			if !yield(digits) {
				return
			}
			i := 0
			for ; i < n && digits[i] == base-1; i++ {
				digits[i] = 0
			}
			if i == n {
				return
			}
			digits[i]++
		}
	}
}

// Trace returns the operations since Record, one per line, without the directories of file names.
func (m *Memory) Trace() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	for _, at := range m.snapshots[1:] {
		op := at.op
		for path := range m.dirs {
			op = strings.ReplaceAll(op, path+"/", "")
		}
		text.WriteString(op + "\n")
	}
	return text.String()
}
