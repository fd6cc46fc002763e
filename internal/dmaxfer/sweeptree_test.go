package dmaxfer

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// treeSweepScenarios are small trees that use as much of a copy as goes together.
func treeSweepScenarios() map[string]scenario {
	random := rand.New(rand.NewPCG(1, 3))
	scenarios := map[string]scenario{}
	for _, sender := range []wire.Side{wire.Host, wire.DPU} {
		fresh := scenario{
			Sender: sender, Chunk: 4096, Depth: 3, Idle: time.Second,
			Digest: digest.CRC32C, Durability: wire.DurabilityFull,
			NetDelay: time.Millisecond, EngineDelay: time.Millisecond, DiskDelay: time.Millisecond,
			Tree: fileTree{
				"a":       {text: noise(random, 2*4096+100, false)},
				"b":       {mode: fs.ModeDir},
				"b/c":     {text: noise(random, 100, false)},
				"b/d":     {text: ""},
				"b/e":     {mode: fs.ModeDir},
				"b/e/f":   {text: noise(random, 4096, false)},
				"b/empty": {mode: fs.ModeDir},
				"g":       {mode: fs.ModeSymlink, text: "b/c"},
			},
		}
		scenarios[fmt.Sprint("new tree of the ", sender)] = fresh

		update := fresh
		update.Digest, update.Durability = digest.XXH3, wire.DurabilityNone
		update.Overwrite, update.Checksum = true, true
		update.OldTree = maps.Clone(fresh.Tree)
		delete(update.OldTree, "b/e/f")
		update.OldTree["b/c"] = treeEntry{text: "old"}
		update.OldTree["a"] = treeEntry{text: "older than the source"}
		update.OldTree["g"] = treeEntry{mode: fs.ModeSymlink, text: "elsewhere"}
		update.OldTree["extra"] = treeEntry{text: "is not in the source"}
		scenarios[fmt.Sprint("update of the tree of the ", sender)] = update
	}
	return scenarios
}

// attempts implements oracle.
func (c *treeChecker) attempts() *checker { return c.checker }

// stage implements oracle.
func (c *treeChecker) stage() [2]*disktest.Memory {
	disks := c.newDisks()
	c.look(disks)
	return disks
}

// remains implements oracle.
func (c *treeChecker) remains(e results) bool {
	if e.errs == [2]error{} {
		return false
	}
	c.removeEmpty()
	return true
}

// judgeHung implements oracle.
func (c *treeChecker) judgeHung(e results) { c.entries(e) }
