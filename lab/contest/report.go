package contest

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// Write prints the conditions of a record and its tables.
func (r *Record) Write(w io.Writer, form bench.Form) error {
	s := &bench.Report{W: w, Form: form}
	s.List(r.Conditions())
	if c := r.Copies; c != nil {
		s.Paragraph(c.heading())
		s.Table(c.table())
		s.List(append(c.missing(), c.failures()...))
	}
	if t := r.Trees; t != nil {
		s.Paragraph(t.heading())
		s.List(t.shapes())
		s.Table(t.table())
		s.List(append(t.missing(), t.failures()...))
	}
	if c := r.Connected; c != nil {
		c.write(s)
	}
	if m := r.Machines; m != nil {
		m.write(s)
	}
	if r.Engine != nil {
		r.Engine.Write(s)
	}
	return s.Err
}

func (c *CopyRecord) heading() string {
	return fmt.Sprintf("Copies on %s, durability %s; a ratio of 2 is twice as fast as cp%s:",
		c.FileSystem, c.Durability, c.flushNote())
}

func (c *CopySetup) flushNote() string {
	if c.Durability == "none" {
		return ""
	}
	return ", which, like every tool, is followed by sync"
}

// missing returns a line about the tools that are not installed, if there are any.
func (c *CopySetup) missing() []string {
	var names []string
	for _, tool := range c.Tools {
		if !tool.installed() {
			names = append(names, tool.Name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{"not installed: " + strings.Join(names, ", ")}
}

var copyHead = []string{
	"", "size", "GiB/s", "ratio", "p50", "p99", "min", "max", "copy only", "copy ratio", "first byte", "CPU s/GiB",
}

// limitHead are the columns that follow copyHead if the limit was measured.
var limitHead = []string{"of limit", "copy of limit"}

func (c *CopyRecord) table() *bench.Table {
	limited := slices.ContainsFunc(c.Results, func(r CopyResult) bool { return r.LimitRatio > 0 })
	t := &bench.Table{Head: copyHead}
	if limited {
		t.Head = slices.Concat(copyHead, limitHead)
	}
	for _, result := range c.Results {
		row := c.row(result)
		if limited {
			row = append(row, ratioText(result.LimitRatio), ratioText(result.LimitCopyRatio))
		}
		t.Add(row...)
	}
	return t
}

func (c *CopyRecord) row(r CopyResult) []string {
	if r.Error != "" {
		return []string{c.label(r), bench.SizeText(r.Bytes), "failed", "", "", "", "", "", "", "", "", ""}
	}
	return []string{
		c.label(r), bench.SizeText(r.Bytes), bench.RateText(r.Rate), ratioText(r.Ratio),
		secondsText(r.Seconds.P50), secondsText(r.Seconds.P99), secondsText(r.Seconds.Min), secondsText(r.Seconds.Max),
		median(r.CopySeconds), ratioText(r.CopyRatio), median(r.FirstByte), fmt.Sprintf("%.2f", r.CPUPerGiB),
	}
}

func median(s *bench.Spread) string {
	if s == nil {
		return ""
	}
	return secondsText(s.P50)
}

func (c *CopyRecord) label(r CopyResult) string { return label(r, c.Results) }

// label names a candidate and those of its settings that differ among all results.
func label(r CopyResult, all []CopyResult) string {
	if r.Contender != programName {
		return r.Contender
	}
	// Only the results that did not fail have the negotiated values.
	ours := slices.DeleteFunc(slices.Clone(all), func(r CopyResult) bool {
		return r.Contender != programName || r.Error != ""
	})
	words := []string{r.Contender, string(r.Direction)}
	if r.Daemon != "" {
		words = append(words, "daemon "+string(r.Daemon))
	}
	if varies(ours, func(r CopyResult) int64 { return r.Chunk }) {
		words = append(words, bench.SizeText(r.Chunk))
	}
	if varies(ours, func(r CopyResult) int { return r.Depth }) {
		words = append(words, fmt.Sprintf("depth %d", r.Depth))
	}
	if varies(ours, func(r CopyResult) string { return r.Digest }) {
		words = append(words, r.Digest)
	}
	overNetwork := r.Direction == Push || r.Direction == Pull
	if overNetwork || varies(ours, func(r CopyResult) string { return r.Path }) {
		words = append(words, "path "+r.Path)
	}
	return strings.Join(words, " ")
}

func varies[R any, V comparable](results []R, of func(R) V) bool {
	return len(bench.Distinct(results, of)) > 1
}

func (c *CopyRecord) failures() (lines []string) {
	for _, r := range c.Results {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s, %s failed: %s", c.label(r), bench.SizeText(r.Bytes),
				bench.OneLine(r.Error)))
		}
	}
	return lines
}
