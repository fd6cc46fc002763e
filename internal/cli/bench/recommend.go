package bench

import (
	"cmp"
	"slices"
)

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

// Recommend returns the settings that follow from results; nil if there are none. The throughput of settings is that of
// the sender for which they are worst, as a part of the best of that sender. Among those near the top it takes the
// first path, then the smallest window, the fewest lanes, and the fewest chunks.
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
