package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

const (
	fastFlag = "--path fast "
	byFast   = "over producers and consumers"
)

// TestFastPath copies files and a tree over producers and consumers, in both directions. Either side can ask for it.
func TestFastPath(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 4097, 20<<20 + 1} {
		for i, sender := range bothSides {
			t.Run(fmt.Sprintf("%d_from_%s", size, sender), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.createFile(sender, size)
				flags := [2]string{}
				flags[i] = fastFlag
				f.expectPath(flags[0]+"--digest blake3", flags[1]+"--chunk 256KiB --depth 5", true)
				f.expectSameFiles()
				f.expectClean()
			})
		}
	}
	for _, sender := range bothSides {
		t.Run("tree_from_"+sender, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.makeTree(sender, filetree.Source, 300)
			sides := f.expectTree(sender, treeFlags{sender: fastFlag})
			sides["host"].expectStderr(byFast)
			f.expectSameTrees(sender, sameTree)
		})
	}
}

// expectPath runs a transfer that has to succeed, and expects both summaries to say whether it took the fast path.
func (f *fixture) expectPath(hostFlags, dpuFlags string, fast bool) sidePair {
	f.t.Helper()
	sides := f.startBoth(map[string]string{"host": hostCommand + hostFlags, "dpu": dpuCommand + dpuFlags})
	for name, s := range sides {
		s.expectExitIn(exitOK)
		if got := strings.Contains(s.stderr.String(), byFast); got != fast {
			f.t.Errorf("on the fast path according to the %s: %t, want %t", name, got, fast)
		}
	}
	return sides
}

// A DPU that may not import the host's memory copies over the fast path instead, if the user permits it.
func TestImportNotPermitted(t *testing.T) {
	t.Parallel()
	const refused = "DMA_COPY_SOFT_FAULTS=refuse=doca_mmap_create_from_export:1:NOT_PERMITTED "
	for _, sender := range bothSides {
		t.Run("file_from_"+sender, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile(sender, 3<<20)
			sides := f.startBoth(map[string]string{"host": hostCommand, "dpu": refused + dpuCommand})
			for _, s := range sides {
				s.expectExitIn(exitOK)
				s.expectStderr(byFast)
				s.expectStderr("may not import")
			}
			f.expectSameFiles()
			f.expectClean()
		})
		t.Run("tree_from_"+sender, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.makeTree(sender, filetree.Source, 50)
			sides := f.startBoth(map[string]string{"host": hostTree, "dpu": refused + dpuTree})
			for _, s := range sides {
				s.expectExitIn(exitOK)
				s.expectStderr(byFast)
			}
			f.expectSameTrees(sender, sameTree)
		})
	}
	for name, flags := range map[string][2]string{
		"DPU insists on DMA":  {"", "--path dma"},
		"host insists on DMA": {"--path dma", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile("host", 3<<20)
			sides := f.startBoth(map[string]string{
				"host": hostCommand + flags[0], "dpu": refused + dpuCommand + flags[1],
			})
			sides["host"].expectExitIn(exitDevice)
			sides["dpu"].expectExitIn(exitDevice)
			f.expectNoFile("dpu")
			f.expectClean()
		})
	}
}

// Where both sides can use DMA, they do.
func TestPathIsDMA(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createFile("host", 1<<20)
	f.expectPath("", "--path auto", false)
	f.expectSameFiles()
}

func TestNoCommonPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createFile("host", 1<<20)
	sides := f.startBoth(map[string]string{"host": hostCommand + fastFlag, "dpu": dpuCommand + "--path dma"})
	for _, s := range sides {
		s.expectExitIn(exitDevice)
		s.expectStderr("no data path in common", "leave out --path")
	}
	for name, lines := range map[string]map[string]string{
		"reference DPU":  {"host": hostCommand + fastFlag, "dpu": refpeerDPU},
		"reference host": {"host": refpeerHost, "dpu": dpuCommand + fastFlag},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile("host", 1<<20)
			sides := f.startBoth(lines)
			ours := sides["dpu"]
			if strings.HasPrefix(lines["host"], "dma-copy") {
				ours = sides["host"]
			}
			ours.expectExitIn(exitProtocol)
			ours.expectStderr("leave out --path fast")
			f.expectNoFile("dpu")
		})
	}
}
