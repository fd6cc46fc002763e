package bench

import (
	"context"
	"os"
	"slices"

	"github.com/dustin/go-humanize/english"
)

// programName is the name of this program among the candidates.
const programName = "dma-copy"

// copyCandidate is a candidate that copies a file.
type copyCandidate interface {
	candidate
	commands() [][]string
}

// copyEntry is a candidate with what is known of its result before the measurement.
type copyEntry struct {
	copyCandidate
	result CopyResult
}

// measureCopies measures all sizes. It uses folder for the settings of the processes.
func (p Plan) measureCopies(ctx context.Context, folder string, names sideNames) (*CopyRecord, error) {
	w, err := newWorkspace(p.Copies.directory())
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.checkSpace(slices.Max(p.Copies.Sizes)); err != nil {
		return nil, err
	}
	m, err := p.newPairConfig(folder, names)
	if err != nil {
		return nil, err
	}
	record := &CopyRecord{
		Directory: p.Copies.directory(), FileSystem: fileSystemOf(w.folder), Durability: p.Copies.Durability,
		Tools: findTools(ctx, p.Copies.Tools),
	}
	p.notifyMissingTools(record.Tools)
	for _, size := range p.Copies.Sizes {
		results, err := p.measureSize(ctx, w, m, record.Tools, size)
		if err != nil {
			return nil, err
		}
		record.Results = append(record.Results, results...)
	}
	return record, nil
}

func (c *CopyPlan) directory() string {
	if c.Directory == "" {
		return os.TempDir()
	}
	return c.Directory
}

func (p Plan) notifyMissingTools(tools []Tool) {
	for _, tool := range tools {
		if !tool.installed() {
			p.notify("%s is not installed, skipping it", tool.Name)
		}
	}
}

// measureSize measures one group: all candidates copy the same file, interleaved.
func (p Plan) measureSize(
	ctx context.Context, w *workspace, m *pairConfig, tools []Tool, size int64,
) ([]CopyResult, error) {
	if err := w.makeSource(ctx, size); err != nil {
		return nil, err
	}
	memoryTouched := true
	entries := w.toolEntries(tools, size, p.Copies.Durability, &memoryTouched)
	entries = append(entries, p.Copies.ownEntries(w, m, size, &memoryTouched)...)
	p.notify("copies of %s: %s in %s each", sizeText(size), english.Plural(len(entries), "candidate", ""),
		english.Plural(p.Runs+p.Warmup, "round", ""))
	candidates := make([]candidate, len(entries))
	for i := range entries {
		candidates[i] = entries[i]
	}
	outcomes, err := p.rounds().measure(ctx, candidates)
	if err != nil {
		return nil, err
	}
	return conclude(entries, outcomes, memoryTouched), nil
}

func (w *workspace) toolEntries(
	tools []Tool, size int64, durability string, memoryTouched *bool,
) (entries []copyEntry) {
	for _, tool := range tools {
		if tool.installed() {
			entries = append(entries, copyEntry{
				copyCandidate: w.newToolCopy(tool.Name, size, durability, memoryTouched),
				result:        CopyResult{Contender: tool.Name, Bytes: size},
			})
		}
	}
	return entries
}

func (c *CopyPlan) ownEntries(w *workspace, m *pairConfig, size int64, memoryTouched *bool) (entries []copyEntry) {
	for _, v := range c.variants() {
		entries = append(entries, copyEntry{
			copyCandidate: w.newPairCopy(m, size, v, memoryTouched),
			result: CopyResult{
				Contender: programName, Bytes: size,
				Direction: v.direction, Chunk: v.chunk, Depth: v.depth, Digest: v.digest,
			},
		})
	}
	return entries
}

func (c *CopyPlan) variants() (all []variant) {
	for _, direction := range c.Directions {
		for _, chunk := range c.Chunks {
			for _, depth := range c.Depths {
				for _, digest := range c.Digests {
					all = append(all, variant{direction, chunk, depth, digest, c.Durability})
				}
			}
		}
	}
	return all
}

// conclude turns outcomes into results. Ratios are to the first candidate if that is cp and has not failed.
func conclude(entries []copyEntry, outcomes []outcome, memoryTouched bool) []CopyResult {
	var results []CopyResult
	for i, e := range entries {
		result := e.result
		result.Commands, result.MemoryTouched = e.commands(), memoryTouched
		if ours, is := e.copyCandidate.(*pairCopy); is && outcomes[i].err == nil {
			result.Chunk, result.Depth = ours.chunk, ours.depth
		}
		result.setOutcome(outcomes[i])
		results = append(results, result)
	}
	setRatios(results)
	return results
}

func (r *CopyResult) setOutcome(o outcome) {
	if o.err != nil {
		r.Error = o.err.Error()
		return
	}
	r.Seconds, r.CopySeconds = o.spread(secondsOf), o.spread(copyOf)
	r.Connected, r.FirstByte = o.spread(connectedOf), o.spread(firstByteOf)
	r.Rate = float64(r.Bytes) / r.Seconds.P50
	if cpu := o.spread(cpuOf); cpu != nil {
		r.CPUPerGiB = cpu.P50 / (float64(r.Bytes) / gibibyte)
	}
}

func setRatios(results []CopyResult) {
	if len(results) == 0 || results[0].Contender != toolCp || results[0].Seconds == nil {
		return
	}
	standard := results[0].Seconds.P50
	for i := range results {
		if r := &results[i]; r.Seconds != nil {
			r.Ratio = standard / r.Seconds.P50
			if r.CopySeconds != nil {
				r.CopyRatio = standard / r.CopySeconds.P50
			}
		}
	}
}
