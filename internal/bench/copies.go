package bench

import (
	"context"
	"os"
	"slices"

	"github.com/dustin/go-humanize/english"
)

// contenderOurs is what this program is called among the contenders.
const contenderOurs = "dma-copy"

// copier is a contender that copies a file.
type copier interface {
	contender
	commands() [][]string
}

// entrant is a contender with what the record says of it before anything is measured.
type entrant struct {
	copier
	result CopyResult
}

// measureCopies uses folder for what is no part of a copy.
func (p Plan) measureCopies(ctx context.Context, folder string, names sideNames) (*CopyRecord, error) {
	f, err := newField(p.Copies.directory())
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.checkRoom(slices.Max(p.Copies.Sizes)); err != nil {
		return nil, err
	}
	m, err := p.newMeeting(folder, names)
	if err != nil {
		return nil, err
	}
	record := &CopyRecord{
		Directory: p.Copies.directory(), FileSystem: fileSystemOf(f.folder), Durability: p.Copies.Durability,
		Tools: findTools(ctx, p.Copies.Tools),
	}
	p.tellMissing(record.Tools)
	for _, size := range p.Copies.Sizes {
		results, err := p.measureSize(ctx, f, m, record.Tools, size)
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

func (p Plan) tellMissing(tools []Tool) {
	for _, tool := range tools {
		if !tool.installed() {
			p.tell("%s is not installed, skipping it", tool.Name)
		}
	}
}

// measureSize is one group: all contenders copy the same file in turns.
func (p Plan) measureSize(ctx context.Context, f *field, m *meeting, tools []Tool, size int64) ([]CopyResult, error) {
	if err := f.makeSource(ctx, size); err != nil {
		return nil, err
	}
	settled := true
	entrants := append(f.toolEntrants(tools, size, p.Copies.Durability, &settled), p.Copies.ourEntrants(f, m, size, &settled)...)
	p.tell("copies of %s: %s in %s each", sizeText(size), english.Plural(len(entrants), "contender", ""),
		english.Plural(p.Runs+p.Warmup, "round", ""))
	contenders := make([]contender, len(entrants))
	for i := range entrants {
		contenders[i] = entrants[i]
	}
	outcomes, err := p.rounds().measure(ctx, contenders)
	if err != nil {
		return nil, err
	}
	return conclude(entrants, outcomes, settled), nil
}

func (f *field) toolEntrants(tools []Tool, size int64, durability string, settled *bool) (entrants []entrant) {
	for _, tool := range tools {
		if tool.installed() {
			entrants = append(entrants, entrant{
				copier: f.newToolCopy(tool.Name, size, durability, settled), result: CopyResult{Contender: tool.Name, Bytes: size},
			})
		}
	}
	return entrants
}

func (c *CopyPlan) ourEntrants(f *field, m *meeting, size int64, settled *bool) (entrants []entrant) {
	for _, v := range c.variants() {
		entrants = append(entrants, entrant{
			copier: f.newPairCopy(m, size, v, settled),
			result: CopyResult{
				Contender: contenderOurs, Bytes: size, Direction: v.direction, Chunk: v.chunk, Depth: v.depth, Digest: v.digest,
			},
		})
	}
	return entrants
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

// conclude turns outcomes into results. Ratios are to the first contender if that is cp and has not failed.
func conclude(entrants []entrant, outcomes []outcome, settled bool) []CopyResult {
	var results []CopyResult
	for i, e := range entrants {
		result := e.result
		result.Commands, result.Settled = e.commands(), settled
		if ours, is := e.copier.(*pairCopy); is && outcomes[i].err == nil {
			result.Chunk, result.Depth = ours.chunk, ours.depth
		}
		result.take(outcomes[i])
		results = append(results, result)
	}
	relateToCp(results)
	return results
}

func (r *CopyResult) take(o outcome) {
	if o.err != nil {
		r.Error = o.err.Error()
		return
	}
	r.Seconds, r.CopySeconds = o.spread(wallOf), o.spread(copyOf)
	r.Met, r.FirstByte = o.spread(metOf), o.spread(firstByteOf)
	r.Rate = float64(r.Bytes) / r.Seconds.P50
	if cpu := o.spread(cpuOf); cpu != nil {
		r.CPUPerGiB = cpu.P50 / (float64(r.Bytes) / gibibyte)
	}
}

func relateToCp(results []CopyResult) {
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
