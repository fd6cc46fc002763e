package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Report is the output of bench -o json, described by docs/bench.schema.json. Fields are only ever added.
type Report struct {
	Version     int          `json:"v"` // changes only if a field is removed or changes its meaning
	Software    string       `json:"software"`
	Side        string       `json:"side"` // role of this side
	Driver      string       `json:"driver"`
	Hardware    bool         `json:"hardware"`
	Peer        string       `json:"peer,omitempty"` // software of the other side
	Control     *RoundTrips  `json:"control,omitempty"`
	Results     []Result     `json:"results"`
	Skipped     []Skipped    `json:"skipped"`
	Recommended *Recommended `json:"recommended,omitempty"`
}

// RoundTrips are those over the control channel.
type RoundTrips struct {
	Count  int     `json:"round_trips"`
	Min    float64 `json:"min_seconds"`
	Median float64 `json:"median_seconds"`
	P99    float64 `json:"p99_seconds"`
}

// rowsOf divides the results of one sender and path by chunk and lanes, and returns the depths of all.
func rowsOf(results []Result) (rows [][]Result, depths []int) {
	for i, r := range results {
		if i == 0 || r.Chunk != results[i-1].Chunk || r.Lanes != results[i-1].Lanes {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], r)
		depths = append(depths, r.Depth)
	}
	slices.Sort(depths)
	return rows, slices.Compact(depths)
}

// WriteTable writes the results of one sender and path: a row for each chunk and number of lanes, and a column for each
// depth. The latency is that at the first depth of the row.
func WriteTable(w io.Writer, results []Result) {
	rows, depths := rowsOf(results)
	first := results[0]
	fmt.Fprintf(w, "from the %s by %s, GB/s at a depth of\n   chunk lanes  latency/us", sideName(first.From),
		first.Path)
	for _, depth := range depths {
		fmt.Fprintf(w, " %7d", depth)
	}
	for _, row := range rows {
		fmt.Fprintf(w, "\n%8s %5d  %10.1f", sizeText(row[0].Chunk), row[0].Lanes, row[0].Latency*1e6)
		for _, depth := range depths {
			cell := "-"
			if len(row) > 0 && row[0].Depth == depth {
				cell, row = gigabytes(row[0].Rate), row[1:]
			}
			fmt.Fprintf(w, " %7s", cell)
		}
	}
	fmt.Fprint(w, "\n\n")
}

// sideName returns the name of a role in text.
func sideName(role string) string {
	if role == "dpu" {
		return "DPU"
	}
	return role
}

// sizeText returns a size as the flags take it. It is a multiple of a KiB.
func sizeText(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", bytes>>20)
	}
	return fmt.Sprintf("%dKiB", bytes>>10)
}

func gigabytes(rate float64) string { return fmt.Sprintf("%.2f", rate/1e9) }

// Text returns what follows the tables.
func (r *Report) Text() string {
	var text strings.Builder
	for _, s := range r.Skipped {
		fmt.Fprintf(&text, "from the %s by %s: not measured: %s\n", sideName(s.From), s.Path, quote.Printable(s.Reason))
	}
	if c := r.Control; c != nil {
		fmt.Fprintf(&text, "control channel: %s, min %.1f us, median %.1f us, p99 %.1f us\n",
			quantity.Count(c.Count, "round trip"), c.Min*1e6, c.Median*1e6, c.P99*1e6)
	}
	if m := r.Recommended; m != nil {
		for _, from := range slices.Sorted(maps.Keys(m.Rates)) {
			fmt.Fprintf(&text, "from the %s: %s GB/s with the settings below, at best %s GB/s\n", sideName(from),
				gigabytes(m.Rates[from]), gigabytes(m.Best[from]))
		}
		for _, form := range []string{
			"recommended flags       --path %s --chunk %s --depth %d --lanes %d\n",
			`in the parameter file   "path": "%s", "chunk": "%s", "depth": %d, "lanes": %d` + "\n",
		} {
			fmt.Fprintf(&text, form, m.Path, sizeText(m.Chunk), m.Depth, m.Lanes)
		}
	}
	if !r.Hardware && !strings.HasPrefix(r.Driver, "network") {
		text.WriteString("These figures are of the software device here: they mean nothing for a card.\n")
	}
	return text.String()
}
