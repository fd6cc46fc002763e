package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Write prints the conditions of a record and its tables.
func (r *Record) Write(w io.Writer, form Form) error {
	s := &reportWriter{w: w, form: form}
	s.list(r.conditions())
	if c := r.Copies; c != nil {
		s.paragraph(c.heading())
		s.table(c.table())
		s.list(append(c.missing(), c.failures()...))
	}
	if t := r.Trees; t != nil {
		s.paragraph(t.heading())
		s.list(t.shapes())
		s.table(t.table())
		s.list(append(t.missing(), t.failures()...))
	}
	if c := r.Connected; c != nil {
		c.write(s)
	}
	if m := r.Machines; m != nil {
		m.write(s)
	}
	if e := r.Engine; e != nil && len(e.Results) > 0 {
		s.paragraph(fmt.Sprintf("The engine alone, memory to memory, %s a run, GiB/s of the median:",
			sizeText(e.Bytes)))
		s.table(e.table())
		s.list(e.failures())
	}
	return s.err
}

func (r *Record) conditions() []string {
	m := r.Machine
	device := "no device: bytes move over network connections within the machine"
	if r.Device != nil {
		device = r.Device.String()
	}
	return []string{
		fmt.Sprintf("%s, %s, %s", r.Program, r.Go, r.Date),
		fmt.Sprintf("%s, %d cores (%s), %s, Linux %s, transparent huge pages %s, for shared memory %s",
			m.CPU, m.Cores, m.Arch, sizeText(m.Memory), m.Kernel, m.HugePages, m.ShmemHuge),
		device,
		fmt.Sprintf("%s each, interleaved, after %d for warm-up; load average of the minute before: %.2f",
			quantity.Count(r.Runs, "run"), r.Warmup, m.Load),
		"command: " + strings.Join(r.Command, " "),
	}
}

// String describes the driver and what its times mean.
func (d Device) String() string {
	text := "DOCA " + d.Version
	if d.Driver == "soft" {
		text = d.Version
	}
	if !d.Hardware {
		text += " (software device, no hardware)"
	}
	if d.Limits != "" {
		text += ", with " + d.Limits
	}
	if d.Model != "" {
		text += "; completion times of the model " + d.Model + ", not measured on a card"
	}
	if !d.Moves {
		text += "; NO BYTES ARE MOVED"
	}
	return text
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

func (c *CopyRecord) table() *table {
	limited := slices.ContainsFunc(c.Results, func(r CopyResult) bool { return r.LimitRatio > 0 })
	t := &table{head: copyHead}
	if limited {
		t.head = slices.Concat(copyHead, limitHead)
	}
	for _, result := range c.Results {
		row := c.row(result)
		if limited {
			row = append(row, ratioText(result.LimitRatio), ratioText(result.LimitCopyRatio))
		}
		t.add(row...)
	}
	return t
}

func (c *CopyRecord) row(r CopyResult) []string {
	if r.Error != "" {
		return []string{c.label(r), sizeText(r.Bytes), "failed", "", "", "", "", "", "", "", "", ""}
	}
	return []string{
		c.label(r), sizeText(r.Bytes), rateText(r.Rate), ratioText(r.Ratio),
		secondsText(r.Seconds.P50), secondsText(r.Seconds.P99), secondsText(r.Seconds.Min), secondsText(r.Seconds.Max),
		median(r.CopySeconds), ratioText(r.CopyRatio), median(r.FirstByte), fmt.Sprintf("%.2f", r.CPUPerGiB),
	}
}

func median(s *Spread) string {
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
		words = append(words, sizeText(r.Chunk))
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
	return len(distinct(results, of)) > 1
}

// distinct returns the different values in the order of their first occurrence.
func distinct[R any, V comparable](results []R, of func(R) V) (values []V) {
	for _, r := range results {
		if v := of(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

func (c *CopyRecord) failures() (lines []string) {
	for _, r := range c.Results {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s, %s failed: %s", c.label(r), sizeText(r.Bytes), oneLine(r.Error)))
		}
	}
	return lines
}

// table has a row for each direction and task size, and a column for each depth.
func (e *EngineRecord) table() *table {
	depths := distinct(e.Results, func(r EngineResult) int { return r.Depth })
	t := &table{head: []string{"", "task"}}
	for _, depth := range depths {
		t.head = append(t.head, fmt.Sprintf("depth %d", depth))
	}
	t.head = append(t.head, fmt.Sprintf("us/task at %d", depths[len(depths)-1]), "CPU s/GiB")
	for _, direction := range distinct(e.Results, func(r EngineResult) Direction { return r.Direction }) {
		for _, chunk := range distinct(e.Results, func(r EngineResult) int64 { return r.Chunk }) {
			t.add(e.row(direction, chunk, depths)...)
		}
	}
	return t
}

// row ends with the values of the last depth.
// row has a cell for each depth, which is empty if that was not measured.
func (e *EngineRecord) row(direction Direction, chunk int64, depths []int) []string {
	cells := []string{string(direction), sizeText(chunk)}
	perTask, cpu := "", ""
	for _, depth := range depths {
		at := slices.IndexFunc(e.Results, func(r EngineResult) bool {
			return r.Direction == direction && r.Chunk == chunk && r.Depth == depth
		})
		switch {
		case at < 0:
			cells = append(cells, "")
		case e.Results[at].Error != "":
			cells = append(cells, "failed")
		default:
			r := e.Results[at]
			cells = append(cells, rateText(r.Rate))
			perTask, cpu = fmt.Sprintf("%.2f", 1e6/r.TasksPerSecond), fmt.Sprintf("%.2f", r.CPUPerGiB)
		}
	}
	return append(cells, perTask, cpu)
}

func (e *EngineRecord) failures() (lines []string) {
	for _, r := range e.Results {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s, tasks of %s, depth %d failed: %s",
				r.Direction, sizeText(r.Chunk), r.Depth, oneLine(r.Error)))
		}
	}
	return lines
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
