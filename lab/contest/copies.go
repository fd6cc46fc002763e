package contest

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// programName is the name of this program among the candidates.
const programName = "dma-copy"

// copyCandidate is a candidate that copies a file or a tree.
type copyCandidate interface {
	bench.Candidate
	commands() [][]string
}

// ownCopy is a candidate of this program.
type ownCopy interface {
	// negotiated returns what both sides have agreed on in the last run.
	negotiated() (chunk int64, depth int)
}

// copyEntry is a candidate with what is known of its result before the measurement.
type copyEntry struct {
	copyCandidate
	result CopyResult
}

// measureCopies measures all sizes.
func (p Plan) measureCopies(ctx context.Context, m *pairConfig) (*CopyRecord, error) {
	w, err := newWorkspace(p.Copies.directory())
	if err != nil {
		return nil, err
	}
	defer w.close()
	largest := slices.Max(p.Copies.Sizes)
	if err := w.checkSpace(space{
		what: fmt.Sprintf("a file of %s and its copy", bench.SizeText(largest)), bytes: 2 * largest, inodes: 2,
		next: "smaller files with --sizes",
	}); err != nil {
		return nil, err
	}
	record := &CopyRecord{CopySetup: p.newSetup(ctx, w, p.Copies.CopySettings, fileTools)}
	for _, size := range p.Copies.Sizes {
		results, err := p.measureSize(ctx, w, m, record.Tools, size)
		if err != nil {
			return nil, err
		}
		record.Results = append(record.Results, results...)
	}
	return record, nil
}

func (s *CopySettings) directory() string {
	if s.Directory == "" {
		return os.TempDir()
	}
	return s.Directory
}

// newSetup finds those of the tools that are usable.
func (p Plan) newSetup(ctx context.Context, w *workspace, s CopySettings, usable []string) CopySetup {
	setup := CopySetup{
		Directory: s.directory(), FileSystem: fileSystemOf(w.folder), Durability: s.Durability,
		Tools: findTools(ctx, s.Tools, usable),
	}
	for _, tool := range setup.Tools {
		switch {
		case tool.installed():
		case tool.Name == toolLimit:
			p.notify("%s is not installed, skipping it: make limit in the sources builds bin/%s; install it beside %s",
				tool.Name, limitProgram, programName)
		default:
			p.notify("%s is not installed, skipping it", tool.Name)
		}
	}
	return setup
}

// measureSize measures one group: all candidates copy the same file, interleaved.
func (p Plan) measureSize(
	ctx context.Context, w *workspace, m *pairConfig, tools []Tool, size int64,
) ([]CopyResult, error) {
	if err := w.makeSource(ctx, size); err != nil {
		return nil, err
	}
	t := fileTask{w.newConditions(size)}
	entries := t.toolEntries(tools, p.Copies.Durability)
	entries = append(entries, t.ownEntries(m, p.Copies)...)
	outcomes, err := p.measureGroup(ctx, "copies of "+bench.SizeText(size), entries)
	if err != nil {
		return nil, err
	}
	results := conclude(entries, outcomes, t.memoryTouched)
	setRatios(results)
	return results, nil
}

// measureGroup runs the candidates interleaved.
func (p Plan) measureGroup(ctx context.Context, what string, entries []copyEntry) ([]bench.Outcome, error) {
	p.notify("%s: %s in %s each", what, quantity.Count(len(entries), "candidate"),
		quantity.Count(p.Runs+p.Warmup, "round"))
	candidates := make([]bench.Candidate, len(entries))
	for i := range entries {
		candidates[i] = entries[i]
	}
	return p.Rounds().Measure(ctx, candidates)
}

func (t fileTask) toolEntries(tools []Tool, durability string) (entries []copyEntry) {
	for _, tool := range tools {
		if tool.installed() {
			stages := append(t.workspace.fileStages(tool.Name), t.workspace.syncFile(durability)...)
			entries = append(entries, copyEntry{
				copyCandidate: &toolCopy{task: t, stages: stages},
				result:        CopyResult{Contender: tool.Name, Bytes: t.size},
			})
		}
	}
	return entries
}

func (t fileTask) ownEntries(m *pairConfig, c *CopyPlan) (entries []copyEntry) {
	for _, v := range c.variants() {
		entries = append(entries, copyEntry{
			copyCandidate: m.newPairCopy(t, v, t.workspace.source(), t.workspace.target()),
			result:        v.result(t.size),
		})
	}
	return entries
}

func (s *CopySettings) variants() (all []variant) {
	for _, direction := range s.Directions {
		for _, chunk := range s.Chunks {
			for _, depth := range s.Depths {
				for _, digest := range s.Digests {
					for _, path := range s.Paths {
						all = append(all, variant{direction, chunk, depth, digest, path, s.Durability})
					}
				}
			}
		}
	}
	return all
}

// result returns what is known of the result before the measurement.
func (v variant) result(bytes int64) CopyResult {
	return CopyResult{
		Contender: programName, Bytes: bytes,
		Direction: v.direction, Chunk: v.chunk, Depth: v.depth, Digest: v.digest, Path: v.path,
	}
}

// conclude turns outcomes into results, without ratios.
func conclude(entries []copyEntry, outcomes []bench.Outcome, memoryTouched bool) []CopyResult {
	var results []CopyResult
	for i, e := range entries {
		result := e.result
		result.Commands, result.MemoryTouched = e.commands(), memoryTouched
		if ours, is := e.copyCandidate.(ownCopy); is && outcomes[i].Err == nil {
			result.Chunk, result.Depth = ours.negotiated()
		}
		result.setOutcome(outcomes[i])
		results = append(results, result)
	}
	return results
}

func (r *CopyResult) setOutcome(o bench.Outcome) {
	if o.Err != nil {
		r.Error = o.Err.Error()
		return
	}
	r.Seconds, r.CopySeconds = o.Spread(bench.SecondsOf), o.Spread(copyOf)
	r.Connected, r.FirstByte = o.Spread(connectedOf), o.Spread(firstByteOf)
	r.Rate = float64(r.Bytes) / r.Seconds.P50
	if cpu := o.Spread(bench.CPUOf); cpu != nil {
		r.CPUPerGiB = cpu.P50 / (float64(r.Bytes) / gibibyte)
	}
}

// setRatios sets the ratios to the first candidate if that is cp and has not failed, and those to the limit.
func setRatios(results []CopyResult) {
	setLimitRatios(results)
	if len(results) == 0 || results[0].Contender != toolCp {
		return
	}
	for i := range results {
		r := &results[i]
		r.Ratio, r.CopyRatio = r.ratiosTo(results[0])
	}
}

// ratiosTo returns how many times as fast as another candidate this one is, as a whole and by its transfer alone: 0 if
// either has failed or reports no such time.
func (r *CopyResult) ratiosTo(standard CopyResult) (whole, transfer float64) {
	if standard.Seconds == nil {
		return 0, 0
	}
	if r.Seconds != nil {
		whole = standard.Seconds.P50 / r.Seconds.P50
	}
	if r.CopySeconds != nil {
		transfer = standard.Seconds.P50 / r.CopySeconds.P50
	}
	return whole, transfer
}

func copyOf(r bench.Run) float64      { return r.Copy }
func connectedOf(r bench.Run) float64 { return r.Connected }
func firstByteOf(r bench.Run) float64 { return r.FirstByte }
