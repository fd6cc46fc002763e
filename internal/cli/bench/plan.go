// Package bench says what dma-copy bench measures, which settings follow from that, and writes both as text and
// JSON.
package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Case is one copy from memory to memory.
type Case struct {
	From  string `json:"from"`  // role of the sender, as "host"
	Path  string `json:"path"`  // that carries the content
	Chunk int64  `json:"chunk"` // bytes, at most
	Depth int    `json:"depth"` // chunks in flight, at most
	Lanes int    `json:"lanes"` // of each side, at most one for each chunk in flight
}

// Plan lists the settings to measure, in all combinations.
type Plan struct {
	Chunks        []int64
	Depths, Lanes []int
	Window        int64         // bytes of chunks in flight, at most
	Each          time.Duration // about how long one case is measured
}

// Measured is what a Measurer has found: chunk and depth are those that both sides have used.
type Measured struct {
	Chunk   int64
	Depth   int
	Elapsed time.Duration
}

// Measurer copies so many bytes. An error that is an *Unavailable is about this sender and path only, and ErrSkipped
// about this case only.
type Measurer func(ctx context.Context, c Case, bytes int64) (Measured, error)

// Unavailable is the error of a path that one of the sides cannot or may not use.
type Unavailable struct{ Err error }

// Error implements error.
func (u *Unavailable) Error() string { return u.Err.Error() }

// ErrSkipped is the error of a case that reaches a limit of one of the sides.
var ErrSkipped = errors.New("skipped")

// Result is one measurement.
type Result struct {
	Case
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"`
	Latency float64 `json:"chunk_seconds"` // mean time of a chunk from its announcement to its acknowledgement
}

// Skipped is a sender and a path that could not be measured, or not in the cases that the reason names.
type Skipped struct {
	From   string `json:"from"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// largestMeasurement bounds what one measurement copies, in bytes.
const largestMeasurement = 1 << 40

// rounds is how often each case is measured. The fastest round counts: other work of the machine only ever slows a
// copy.
const rounds = 3

// Run measures all cases of one sender and path, in the order of chunk, lanes and depth. It fails with an
// *Unavailable, and the results so far, if one of these cannot be measured.
func (p Plan) Run(ctx context.Context, from, path string, measure Measurer) ([]Result, error) {
	var results []Result
	seen := map[Case]bool{}
	for _, chunk := range p.Chunks {
		for _, lanes := range p.Lanes {
			for _, depth := range slices.Sorted(slices.Values(p.Depths)) {
				if lanes > depth || chunk*int64(depth) > p.Window {
					continue
				}
				r, err := p.one(ctx, Case{from, path, chunk, depth, lanes}, seen, measure)
				if err != nil && !errors.Is(err, ErrSkipped) {
					return results, err
				}
				if r.Bytes > 0 {
					results = append(results, r)
				}
			}
		}
	}
	return results, nil
}

// one measures a case for about the time of the plan. Before that, copies that grow up to twice the window open it, and
// show how much to copy; on a slow path a few chunks do. It returns nothing if the device's limits make the case one
// that has been measured.
func (p Plan) one(ctx context.Context, c Case, seen map[Case]bool, measure Measurer) (r Result, err error) {
	bytes := 2 * c.Chunk
	last, err := measure(ctx, c, bytes)
	if err != nil {
		return r, err
	}
	c.Chunk, c.Depth = last.Chunk, last.Depth
	if seen[c] || c.Lanes > c.Depth {
		return r, nil
	}
	seen[c] = true
	for most := 2 * c.Chunk * int64(c.Depth); bytes < most && last.Elapsed < p.Each/rounds; {
		bytes = min(4*bytes, most)
		if last, err = measure(ctx, c, bytes); err != nil {
			return r, err
		}
	}
	estimate, least := resultOf(c, bytes, last).Rate, bytes/c.Chunk
	for round := 0; round < rounds && (round == 0 || last.Elapsed < p.Each); round++ {
		chunks := int64(estimate*p.Each.Seconds()/rounds) / c.Chunk
		bytes = min(max(chunks, least), largestMeasurement/c.Chunk) * c.Chunk
		if last, err = measure(ctx, c, bytes); err != nil {
			return r, err // of the rounds before
		}
		if round := resultOf(c, bytes, last); round.Rate > r.Rate {
			r, estimate = round, round.Rate
		}
	}
	return r, nil
}

func resultOf(c Case, bytes int64, m Measured) Result {
	seconds := max(m.Elapsed, 1).Seconds()
	return Result{
		Case: c, Bytes: bytes, Seconds: seconds, Rate: float64(bytes) / seconds,
		Latency: seconds * float64(c.Depth) / (float64(bytes) / float64(c.Chunk)), // Little's law
	}
}

// near is the part of the best throughput with which a setting is good enough.
const near = 0.95

// Recommended are the cheapest settings with nearly the best throughput for all senders.
type Recommended struct {
	Path  string             `json:"path"`
	Chunk int64              `json:"chunk"`
	Depth int                `json:"depth"`
	Lanes int                `json:"lanes"`
	Rates map[string]float64 `json:"bytes_per_second"`      // by sender
	Best  map[string]float64 `json:"best_bytes_per_second"` // of all settings
}

// Recommend returns the settings that follow from results; nil if there are none. The throughput of settings is the
// throughput of the sender for which they are worst, as a part of that sender's best. Among those near the top it takes
// the first path, then the smallest window, the fewest lanes, and the fewest chunks.
func Recommend(results []Result) *Recommended {
	best := map[string]float64{}
	var paths []string
	bySettings := map[Case]*Recommended{}
	for _, r := range results {
		best[r.From] = max(best[r.From], r.Rate)
		if !slices.Contains(paths, r.Path) {
			paths = append(paths, r.Path)
		}
		settings := r.Case
		settings.From = ""
		if bySettings[settings] == nil {
			bySettings[settings] = &Recommended{
				Path: r.Path, Chunk: r.Chunk, Depth: r.Depth, Lanes: r.Lanes, Rates: map[string]float64{}, Best: best,
			}
		}
		bySettings[settings].Rates[r.From] = r.Rate
	}
	top := 0.0
	for _, r := range bySettings {
		top = max(top, r.part())
	}
	var chosen *Recommended
	for _, r := range bySettings {
		if r.part() >= near*top && (chosen == nil || r.cost(chosen, paths) < 0) {
			chosen = r
		}
	}
	return chosen
}

// part returns the throughput as a part of the best, for the sender for which it is worst; 0 if one was not measured.
func (r *Recommended) part() float64 {
	worst := 1.0
	for from, best := range r.Best {
		worst = min(worst, r.Rates[from]/best)
	}
	return worst
}

// cost compares what two settings cost. The paths are in the order of preference.
func (r *Recommended) cost(other *Recommended, paths []string) int {
	return cmp.Or(
		cmp.Compare(slices.Index(paths, r.Path), slices.Index(paths, other.Path)),
		cmp.Compare(r.Chunk*int64(r.Depth), other.Chunk*int64(other.Depth)),
		cmp.Compare(r.Lanes, other.Lanes), cmp.Compare(r.Depth, other.Depth),
	)
}
