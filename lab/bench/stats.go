package bench

import "slices"

// Spread is the distribution of the durations of several runs, in seconds. Percentiles between two runs are
// interpolated, so the p99 of a few runs is close to the longest one.
type Spread struct {
	P25  float64   `json:"p25,omitempty"`
	P50  float64   `json:"p50"`
	P75  float64   `json:"p75,omitempty"`
	P99  float64   `json:"p99"`
	Min  float64   `json:"min"`
	Max  float64   `json:"max"`
	Runs []float64 `json:"runs"` // in the order of the runs
}

// spreadOf returns the distribution of at least one run.
func spreadOf(runs []float64) Spread {
	sorted := slices.Sorted(slices.Values(runs))
	return Spread{
		P25: percentile(sorted, 0.25), P50: percentile(sorted, 0.50), P75: percentile(sorted, 0.75),
		P99: percentile(sorted, 0.99),
		Min: sorted[0], Max: sorted[len(sorted)-1], Runs: runs,
	}
}

// percentile interpolates between the two neighbours of a rank; rank 0 is the first value and rank 1 the last.
func percentile(sorted []float64, rank float64) float64 {
	at := rank * float64(len(sorted)-1)
	below := int(at)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	part := at - float64(below)
	return sorted[below]*(1-part) + sorted[below+1]*part
}
