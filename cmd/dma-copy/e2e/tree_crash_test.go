package e2e

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

var (
	treeKillCount = flag.Int("tree.kills", 2, "how often TestTreeCrashAtRandomTime kills a side, in each scenario")
	treeKillSeed  = flag.Uint64("tree.seed", 0, "seed of its random times; 0: a new one each time")
)

// TestTreeCrashAtRandomTime kills one side of the transfer of a tree with SIGKILL at random times, again and again,
// each time continuing what the transfer before has left. After each kill every file under its final name is complete,
// and the other side ends by itself. In the end the same two commands complete the tree: they copy no file again that
// was there, and leave nothing else.
func TestTreeCrashAtRandomTime(t *testing.T) {
	t.Parallel()
	seed := *treeKillSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	forEachSideAndSender(t, func(f *fixture, disrupted, sender string) {
		number := uint64(slices.Index(bothSides, disrupted)*2 + slices.Index(bothSides, sender))
		c := treeCrash{f, disrupted, sender, rand.New(rand.NewPCG(seed, number))}
		c.test()
	})
}

// treeCrash is the transfer of a tree of which one side is killed.
type treeCrash struct {
	*fixture
	disrupted, sender string
	random            *rand.Rand
}

func (c treeCrash) receiver() string { return peerOf(c.sender) }

func (c treeCrash) test() {
	c.makeTree(c.sender, filetree.Source, 150)
	must(c.t, writeRandomFile(c.tree(c.sender, "large"), "large", 20<<20)) // more than an interval of the journal
	c.environment = append(c.environment, "DMA_COPY_SOFT_LIMITS=task_latency_us=2000")
	duration := c.expectComplete()
	must(c.t, os.RemoveAll(c.tree(c.receiver())))
	for n := range *treeKillCount {
		c.kill(duration)
		if n%3 == 2 { // usually before the tree is complete
			c.expectComplete()
			must(c.t, os.RemoveAll(c.tree(c.receiver())))
		}
		if c.t.Failed() {
			c.t.Fatalf("at kill %d of this scenario", n)
		}
	}
	c.expectComplete()
}

func (c treeCrash) start() sidePair {
	c.t.Helper()
	const flags = "--chunk 256KiB --depth 4 --wait 10s "
	durability := []string{"none", "file", "full"}[c.random.IntN(3)] // they commit small files in different ways
	return c.startTree(c.sender, treeFlags{flags + "--durability none ", flags + "--durability " + durability})
}

// kill kills the side at a random time of a transfer. It may come too late.
func (c treeCrash) kill(duration time.Duration) {
	c.t.Helper()
	sides := c.start()
	sleepFraction(duration, c.random.Float64())
	sides[c.disrupted].kill()
	sides[c.disrupted].expectExitIn(exitKilled, exitOK)
	sides[peerOf(c.disrupted)].expectExitIn(exitPeer, exitOK)
	c.committed()
}

// committed returns the files that the receiver has under their final names. It expects each to be that of the sender.
func (c treeCrash) committed() (paths []string) {
	c.t.Helper()
	if _, err := os.Lstat(c.tree(c.receiver())); os.IsNotExist(err) {
		return nil
	}
	for _, e := range c.list(c.receiver()) {
		if !e.Mode.IsRegular() || isTemporary(e.Path) {
			continue
		}
		if err := compareFiles(c.tree(c.sender, e.Path), c.tree(c.receiver(), e.Path)); err != nil {
			c.t.Errorf("%s has its final name and is not complete: %v", e.Path, err)
		}
		paths = append(paths, e.Path)
	}
	return paths
}

// isTemporary reports whether the name is one that a receiver gives to what is not committed.
func isTemporary(path string) bool { return strings.Contains(filepath.Base(path), ".dma-copy-") }

// expectComplete runs the transfer to its end and returns how long that took. What was committed before is not copied
// again.
func (c treeCrash) expectComplete() time.Duration {
	c.t.Helper()
	committed := c.committed()
	var before []filetree.Entry
	if committed != nil {
		before = c.list(c.receiver())
	}
	started := time.Now()
	sides := c.start()
	for _, name := range bothSides {
		sides[name].expectExitIn(exitOK)
	}
	duration := time.Since(started)
	c.expectSameTrees(c.sender, sameTree)
	for _, path := range filetree.Written(before, c.list(c.receiver())) {
		if slices.Contains(committed, path) {
			c.t.Errorf("%s was committed, and is written again", path)
		}
	}
	return duration
}
