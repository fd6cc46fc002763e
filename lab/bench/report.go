package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Write adds the table and the failures, if there are results.
func (e *EngineRecord) Write(s *Report) {
	if len(e.Results) == 0 {
		return
	}
	s.Paragraph(fmt.Sprintf("The engine alone, memory to memory, %s a run, GiB/s of the median:", SizeText(e.Bytes)))
	s.Table(e.table())
	s.List(e.failures())
}

// Conditions returns a line for each group of conditions of the measurement.
func (r *Record) Conditions() []string {
	m := r.Machine
	device := "no device: bytes move over network connections within the machine"
	if r.Device != nil {
		device = r.Device.String()
	}
	return []string{
		fmt.Sprintf("%s, %s, %s", r.Program, r.Go, r.Date),
		fmt.Sprintf("%s, %d cores (%s), %s, Linux %s, transparent huge pages %s, for shared memory %s",
			m.CPU, m.Cores, m.Arch, SizeText(m.Memory), m.Kernel, m.HugePages, m.ShmemHuge),
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

// Distinct returns the different values in the order of their first occurrence.
func Distinct[R any, V comparable](results []R, of func(R) V) (values []V) {
	for _, r := range results {
		if v := of(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// table has a row for each direction and task size, and a column for each depth.
func (e *EngineRecord) table() *Table {
	depths := Distinct(e.Results, func(r EngineResult) int { return r.Depth })
	t := &Table{Head: []string{"", "task"}}
	for _, depth := range depths {
		t.Head = append(t.Head, fmt.Sprintf("depth %d", depth))
	}
	t.Head = append(t.Head, fmt.Sprintf("us/task at %d", depths[len(depths)-1]), "CPU s/GiB")
	for _, direction := range Distinct(e.Results, func(r EngineResult) Direction { return r.Direction }) {
		for _, chunk := range Distinct(e.Results, func(r EngineResult) int64 { return r.Chunk }) {
			t.Add(e.row(direction, chunk, depths)...)
		}
	}
	return t
}

// row has a cell for each depth, which is empty if that was not measured, and ends with the values of
// the last depth.
func (e *EngineRecord) row(direction Direction, chunk int64, depths []int) []string {
	cells := []string{string(direction), SizeText(chunk)}
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
			cells = append(cells, RateText(r.Rate))
			perTask, cpu = fmt.Sprintf("%.2f", 1e6/r.TasksPerSecond), fmt.Sprintf("%.2f", r.CPUPerGiB)
		}
	}
	return append(cells, perTask, cpu)
}

func (e *EngineRecord) failures() (lines []string) {
	for _, r := range e.Results {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s, tasks of %s, depth %d failed: %s",
				r.Direction, SizeText(r.Chunk), r.Depth, OneLine(r.Error)))
		}
	}
	return lines
}

// OneLine returns text without line breaks.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
