package contest

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// treeEntry is a candidate that copies a tree.
type treeEntry struct {
	copyEntry
	repeated bool // the target is a copy of the source already
}

// measureTrees measures all shapes.
func (p Plan) measureTrees(ctx context.Context, m *pairConfig) (*TreeRecord, error) {
	w, err := newWorkspace(p.Trees.directory())
	if err != nil {
		return nil, err
	}
	defer w.close()
	for _, shape := range p.Trees.Shapes {
		if err := w.checkSpace(p.Trees.space(shape)); err != nil {
			return nil, err
		}
	}
	record := &TreeRecord{CopySetup: p.newSetup(ctx, w, p.Trees.CopySettings, treeTools)}
	for _, shape := range p.Trees.Shapes {
		tree := filetree.New(shape, p.Trees.Files)
		p.notify("tree %s: %s, %s", shape, quantity.Count(tree.Files, "file"), bench.SizeText(tree.Bytes))
		results, err := p.measureTree(ctx, w, m, record.Tools, shape, tree)
		if err != nil {
			return nil, err
		}
		record.Shapes = append(record.Shapes, shapeOf(shape, tree))
		record.Results = append(record.Results, results...)
	}
	return record, nil
}

func shapeOf(shape filetree.Shape, tree *filetree.Tree) TreeShape {
	return TreeShape{
		Shape: shape, Files: tree.Files, Directories: tree.Directories, Symlinks: tree.Symlinks, Bytes: tree.Bytes,
	}
}

// space returns what the source, one target and the kept targets take.
func (p *TreePlan) space(shape filetree.Shape) space {
	const blockSize = 4096 // that files are rounded up to
	tree := filetree.New(shape, p.Files)
	trees := int64(2 + 1 + len(p.variants())) // rsync and each variant keep a target
	nodes := int64(tree.Files + tree.Directories + tree.Symlinks)
	return space{
		what:  fmt.Sprintf("a tree of %d files (%s) and its copies", tree.Files, shape),
		bytes: trees * (tree.Bytes + nodes*blockSize), inodes: trees * nodes,
		next: "fewer files with --files",
	}
}

// measureTree measures one group: all candidates copy the same tree, interleaved.
func (p Plan) measureTree(
	ctx context.Context, w *workspace, m *pairConfig, tools []Tool, shape filetree.Shape, tree *filetree.Tree,
) ([]TreeResult, error) {
	g, err := w.newTreeGroup(ctx, shape, tree, p.Trees.Durability)
	if err != nil {
		return nil, err
	}
	g.addTools(tools)
	for _, v := range p.Trees.variants() {
		g.addOwn(v.result(tree.Bytes),
			func(t task, target string) copyCandidate { return m.newPairCopy(t, v, w.source(), target) },
			func(t task, target string) copyCandidate {
				return m.newPairCopy(t, v, w.source(), target, "--overwrite")
			})
	}
	return p.measureTreeGroup(ctx, g)
}

// newTreeGroup makes the tree, and a group without candidates.
func (w *workspace) newTreeGroup(
	ctx context.Context, shape filetree.Shape, tree *filetree.Tree, durability string,
) (*treeGroup, error) {
	if err := w.reset(); err != nil {
		return nil, err
	}
	if err := tree.Write(ctx, w.source()); err != nil {
		return nil, err
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	return &treeGroup{
		conditions: w.newConditions(tree.Bytes), shape: shape, tree: tree, durability: durability,
	}, nil
}

func (p Plan) measureTreeGroup(ctx context.Context, g *treeGroup) ([]TreeResult, error) {
	entries := make([]copyEntry, len(g.entries))
	for i, e := range g.entries {
		entries[i] = e.copyEntry
	}
	outcomes, err := p.measureGroup(ctx, "copies of the tree", entries)
	if err != nil {
		return nil, err
	}
	return g.conclude(conclude(entries, outcomes, g.memoryTouched), outcomes), nil
}

// treeGroup has the candidates that copy one tree.
type treeGroup struct {
	*conditions
	shape      filetree.Shape
	tree       *filetree.Tree
	durability string
	entries    []treeEntry
}

func (g *treeGroup) addTools(tools []Tool) {
	for _, tool := range tools {
		if !tool.installed() || tool.Name == toolLimit { // it copies files only
			continue
		}
		copyTo := func(t task, target string) copyCandidate {
			stages := append(g.workspace.treeStages(tool.Name, target), syncTree(target, g.durability)...)
			return &toolCopy{task: t, stages: stages}
		}
		result := CopyResult{Contender: tool.Name, Bytes: g.tree.Bytes}
		g.addFirst(treePreserved(tool.Name), result, copyTo)
		if tool.Name == toolRsync { // the others copy everything again
			g.addRepeated(treePreserved(tool.Name), result, copyTo, copyTo)
		}
	}
}

// addOwn adds candidates of this program: copyTo copies to an absent target, copyOver to an existing one.
func (g *treeGroup) addOwn(result CopyResult, copyTo, copyOver newCopy) {
	preserved := filetree.Comparison{Modes: true, Times: time.Nanosecond}
	g.addFirst(preserved, result, copyTo)
	g.addRepeated(preserved, result, copyTo, copyOver)
}

// newCopy returns a candidate that copies the source to a target.
type newCopy func(t task, target string) copyCandidate

func (g *treeGroup) addFirst(preserved filetree.Comparison, result CopyResult, copyTo newCopy) {
	t := treeTask{conditions: g.conditions, tree: g.tree, target: g.workspace.target(), comparison: preserved}
	g.entries = append(g.entries, treeEntry{copyEntry: copyEntry{copyTo(t, t.target), result}})
}

// addRepeated adds a candidate with a target of its own, which it makes before its first run.
func (g *treeGroup) addRepeated(preserved filetree.Comparison, result CopyResult, first, again newCopy) {
	target := g.workspace.keptTarget(len(g.entries))
	t := &repeatTask{
		treeTask: treeTask{conditions: g.conditions, tree: g.tree, target: target, comparison: preserved},
		first:    first(nil, target), // only its run is used
	}
	g.entries = append(g.entries, treeEntry{copyEntry{again(t, target), result}, true})
}

// conclude adds what is special about trees to the results of all candidates.
func (g *treeGroup) conclude(results []CopyResult, outcomes []bench.Outcome) []TreeResult {
	all := make([]TreeResult, len(results))
	for i, r := range results {
		all[i] = TreeResult{CopyResult: r, Shape: g.shape, Repeated: g.entries[i].repeated}
		if r.Seconds != nil {
			all[i].FilesPerSecond = float64(g.tree.Files) / r.Seconds.P50
		}
		if cpu := outcomes[i].Spread(bench.CPUOf); cpu != nil {
			all[i].CPU = cpu.P50
		}
	}
	setTreeRatios(all)
	return all
}

// setTreeRatios sets the ratios to cp and rsync where they have done the same: cp never repeats a copy.
func setTreeRatios(results []TreeResult) {
	for i := range results {
		r := &results[i]
		for _, standard := range results {
			if standard.Repeated != r.Repeated {
				continue
			}
			switch standard.Contender {
			case toolCp:
				r.Ratio, r.CopyRatio = r.ratiosTo(standard.CopyResult)
			case toolRsync, candidateRsyncDaemon: // a record has one of them
				r.RsyncRatio, r.RsyncCopyRatio = r.ratiosTo(standard.CopyResult)
			}
		}
	}
}
