package dmaxfer

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// crashedTree is the transfer of a tree after which the receiver loses power at any time.
type crashedTree struct {
	*treeChecker
	receiver *disktest.Memory

	mu        sync.Mutex
	confirmed map[string]int // step of the receiver's disk after which the sender knew that a file is committed
}

// A loss of power leaves the old content or the new under each final name. With full durability it leaves all files
// that the sender knows to be committed, and after its success everything.
func TestTreeSurvivesALossOfPower(t *testing.T) {
	for _, durability := range []wire.Durability{
		wire.DurabilityNone, wire.DurabilityFile, wire.DurabilityFull,
	} {
		for _, syncs := range []bool{true, false} {
			for _, overwrite := range []bool{false, true} {
				name := fmt.Sprint(durability, ", syncfs ", syncs, ", overwrite ", overwrite)
				t.Run(name, func(t *testing.T) {
					sc := crashScenario(durability, overwrite)
					c := &crashedTree{treeChecker: newTreeChecker(t, sc), confirmed: map[string]int{}}
					c.copyAndCrash(syncs)
				})
			}
		}
	}
}

func crashScenario(durability wire.Durability, overwrite bool) scenario {
	random := rand.New(rand.NewPCG(2, 2))
	sc := scenario{
		Sender: wire.Host, Chunk: 4096, Depth: 2, Idle: time.Second, Digest: digest.CRC32C,
		Durability: durability, Overwrite: overwrite, NoResume: true,
		Tree: fileTree{
			"a":   {text: noise(random, 4096+100, false)},
			"b":   {mode: fs.ModeDir},
			"b/c": {text: noise(random, 100, false)},
			"b/d": {text: noise(random, 200, false)},
			"e":   {mode: fs.ModeSymlink, text: "b"},
		},
	}
	if overwrite {
		sc.OldTree = fileTree{"b": {mode: fs.ModeDir}, "b/c": {text: "old"}}
	}
	return sc
}

func (c *crashedTree) copyAndCrash(syncs bool) {
	c.t.Helper()
	disks := c.newDisks()
	c.receiver = disks[c.Sender.Other()]
	c.receiver.Without(disktest.Lacking{SyncFS: !syncs})
	c.receiver.Record()
	e := c.run(disks, fault{}, injection{wish: func(o *Options) {
		if o.Side == c.Sender {
			told := o.Notify
			o.Notify = func(e job.Event) {
				told(e)
				c.confirm(e)
			}
		}
	}})
	c.mustSucceed("before the loss of power", e)
	states, first := 0, firstOfSweep()
	for crash := range c.receiver.Crashes() {
		states++
		if states%sweepStep != first {
			continue
		}
		c.check(crash)
		if c.t.Failed() {
			return
		}
	}
	if states < 50 || len(c.confirmed) != 3 {
		c.t.Errorf("there were only %d states, and %d files were confirmed", states, len(c.confirmed))
	}
}

// confirm notes that the sender knows of a committed file.
func (c *crashedTree) confirm(e job.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, done := e.(job.FileDone); done && is.Kind == wire.EntryFile && is.Action == job.Copied {
		c.confirmed[is.Path] = c.receiver.Steps() - 1
	}
}

func (c *crashedTree) check(crash disktest.Crash) {
	c.t.Helper()
	got := treeAt(c.t, crash.FS, simTree)
	last := c.receiver.Steps() - 1
	for name, want := range c.Tree {
		is, found := got[name]
		was, existed := c.old[name]
		old, whole := found == existed && is.same(was), found && is.same(want)
		confirmed, known := c.confirmed[name]
		switch {
		case !old && !whole && (c.Durability != wire.DurabilityNone || want.mode != 0):
			c.t.Errorf("%s: %s has %d bytes that are neither old nor new", crash.What, name, len(is.text))
		case c.Durability != wire.DurabilityFull || whole:
		case known && crash.Step >= confirmed, crash.Step == last:
			c.t.Errorf("%s: %s was confirmed, and is gone", crash.What, name)
		}
	}
}
