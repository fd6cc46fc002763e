package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// The networks of a NetworkResult.
const (
	networkNone   = "none"
	networkTCP    = "tcp"
	networkShared = "shared memory"
)

// networkEntry is a candidate with what is known of its result before the measurement.
type networkEntry struct {
	copyEntry
	result NetworkResult // without the embedded CopyResult, which copyEntry has
}

// machinesBench measures copies over network connections within this machine.
type machinesBench struct {
	Plan
	workspace *workspace
	config    *pairConfig // of the daemons
	tools     []Tool      // that are installed
	links     []*networkLink
}

// measureMachines measures all sizes, and a tree of small files.
func (p Plan) measureMachines(ctx context.Context, m *pairConfig) (record *MachinesRecord, err error) {
	w, err := newWorkspace(p.Machines.directory())
	if err != nil {
		return nil, err
	}
	defer w.close()
	for _, needed := range p.Machines.spaces() {
		if err := w.checkSpace(needed); err != nil {
			return nil, err
		}
	}
	record = &MachinesRecord{CopySetup: p.newSetup(ctx, w, p.Machines.CopySettings, networkTools)}
	b := &machinesBench{Plan: p, workspace: w, config: m}
	for _, tool := range record.Tools {
		if tool.installed() {
			b.tools = append(b.tools, tool)
		}
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	return record, b.measure(ctx, record)
}

// spaces returns what each of the groups takes.
func (p *MachinesPlan) spaces() []space {
	largest := slices.Max(p.Sizes)
	trees := &TreePlan{Files: p.Files, CopySettings: p.CopySettings}
	return []space{
		{
			what: fmt.Sprintf("a file of %s and its copy", bench.SizeText(largest)), bytes: 2 * largest, inodes: 2,
			next: "smaller files with --sizes",
		},
		trees.space(filetree.Small),
	}
}

func (b *machinesBench) measure(ctx context.Context, r *MachinesRecord) error {
	for _, size := range b.Machines.Sizes {
		results, err := b.measureSize(ctx, size)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, results...)
	}
	return b.measureTree(ctx, r)
}

// measureSize measures one group: all candidates copy the same file, interleaved.
func (b *machinesBench) measureSize(ctx context.Context, size int64) ([]NetworkResult, error) {
	if err := b.workspace.makeSource(ctx, size); err != nil {
		return nil, err
	}
	if err := b.workspace.writeServerFiles(); err != nil {
		return nil, err
	}
	t := fileTask{b.workspace.newConditions(size)}
	entries := b.toolEntries(t)
	for _, l := range b.links {
		entries = append(entries, l.fileEntries(t)...)
	}
	copies := make([]copyEntry, len(entries))
	for i, e := range entries {
		copies[i] = e.copyEntry
	}
	outcomes, err := b.measureGroup(ctx, "copies of "+bench.SizeText(size), copies)
	if err != nil {
		return nil, err
	}
	return concludeNetwork(entries, conclude(copies, outcomes, t.memoryTouched)), nil
}

func (b *machinesBench) toolEntries(t fileTask) (entries []networkEntry) {
	for _, tool := range b.tools {
		entries = append(entries, b.workspace.networkEntries(tool.Name, t, b.Machines.Durability)...)
	}
	return entries
}

// concludeNetwork adds what is special about network connections to the results of all candidates, and their ratios.
func concludeNetwork(entries []networkEntry, results []CopyResult) []NetworkResult {
	setRatios(results)
	all := make([]NetworkResult, len(results))
	for i, r := range results {
		all[i] = entries[i].result
		all[i].CopyResult = r
	}
	setNetworkRatios(all)
	return all
}

// standards are the candidates that others are compared with, besides cp.
var standards = []string{candidateRsyncDaemon, candidateSocatTLS, toolIperf}

// setNetworkRatios sets the ratios to the standards. A tool is compared by the time that it reports, if it does,
// because a candidate of this program is connected already, too.
func setNetworkRatios(results []NetworkResult) {
	for _, name := range standards {
		at := slices.IndexFunc(results, func(r NetworkResult) bool { return r.Contender == name && r.Seconds != nil })
		if at < 0 {
			continue
		}
		standard := results[at].ownTime()
		for i := range results {
			r := &results[i]
			if r.Seconds == nil {
				continue
			}
			if r.Ratios == nil {
				r.Ratios = make(map[string]float64)
			}
			r.Ratios[name] = standard / r.ownTime()
		}
	}
}

// ownTime returns the median of the seconds that a tool without files reports, or else of the whole run.
func (r *NetworkResult) ownTime() float64 {
	if r.NoFiles && r.CopySeconds != nil {
		return r.CopySeconds.P50
	}
	return r.Seconds.P50
}

// measureTree measures a tree of small files.
func (b *machinesBench) measureTree(ctx context.Context, r *MachinesRecord) error {
	tree := filetree.New(filetree.Small, b.Machines.Files)
	b.notify("tree %s: %s, %s", filetree.Small, quantity.Count(tree.Files, "file"), bench.SizeText(tree.Bytes))
	g, err := b.workspace.newTreeGroup(ctx, filetree.Small, tree, b.Machines.Durability)
	if err != nil {
		return err
	}
	if err := b.workspace.writeServerFiles(); err != nil {
		return err
	}
	for _, tool := range b.tools {
		switch tool.Name {
		case toolCp:
			g.addTools([]Tool{tool})
		case toolRsync:
			g.addRsyncDaemon()
		}
	}
	for _, l := range b.links {
		l.addTo(g)
	}
	if r.Trees, err = b.measureTreeGroup(ctx, g); err != nil {
		return err
	}
	r.Shapes = []TreeShape{shapeOf(filetree.Small, tree)}
	return nil
}

// addRsyncDaemon adds the candidates that copy the tree from a daemon of rsync.
func (g *treeGroup) addRsyncDaemon() {
	copyTo := func(t task, target string) copyCandidate {
		return &servedCopy{
			task: t, servedTool: g.workspace.rsyncDaemon("source/", target+"/"), size: g.tree.Bytes, storing: true,
			after: syncTree(target, g.durability),
		}
	}
	result := CopyResult{Contender: candidateRsyncDaemon, Bytes: g.tree.Bytes}
	g.addFirst(treePreserved(toolRsync), result, copyTo)
	g.addRepeated(treePreserved(toolRsync), result, copyTo, copyTo)
}
