package contest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/plot"
)

// ErrNothingToPlot means that no candidate succeeded, or that the record has only trees, of which there is no chart.
var ErrNothingToPlot = errors.New("nothing to plot")

// Plot draws a record as SVG: the throughput of copies of files over their size, with one line for each candidate and
// direction, and for each direction the throughput of the engine over its depth. Of several settings of this program
// the fastest counts.
func (r *Record) Plot(w io.Writer) error {
	var charts []plot.Lines
	if c := r.Copies; c != nil {
		charts = append(charts, copyChart(c.CopySetup, "a process started on each side", c.Results))
	}
	if c := r.Connected; c != nil {
		charts = append(charts, copyChart(c.CopySetup, "connected to a daemon", c.Results))
	}
	if m := r.Machines; m != nil {
		charts = append(charts, copyChart(m.CopySetup, "over the network within the machine", m.copies()))
	}
	if r.Engine != nil && r.Device != nil {
		charts = append(charts, engineCharts(r.Engine, *r.Device)...)
	}
	charts = slices.DeleteFunc(charts, func(c plot.Lines) bool { return c.Empty() })
	if len(charts) == 0 {
		return ErrNothingToPlot
	}
	return plot.WriteLines(w, r.Program+", "+r.Date, charts)
}

func copyChart(setup CopySetup, how string, results []CopyResult) plot.Lines {
	drawn := plot.Lines{
		Title: fmt.Sprintf("Copies on %s, %s, durability %s", setup.FileSystem, how, setup.Durability),
		X:     "file size", Y: "GiB/s", Logarithmic: true,
	}
	for _, r := range results {
		if r.Error == "" {
			name, ours := r.Contender, r.Contender == programName
			if ours {
				name += " " + string(r.Direction)
			}
			drawn.Add(name, ours, float64(r.Bytes), bench.SizeText(r.Bytes), r.Rate/gibibyte)
		}
	}
	return drawn
}

// engineCharts has a line for each size of a task. The largest one is drawn strongly.
func engineCharts(e *bench.EngineRecord, d bench.Device) (drawn []plot.Lines) {
	directions := bench.Distinct(e.Results, func(r bench.EngineResult) bench.Direction { return r.Direction })
	largest := int64(0)
	for _, r := range e.Results {
		if r.Error == "" {
			largest = max(largest, r.Chunk)
		}
	}
	for _, direction := range directions {
		c := plot.Lines{
			Title: "Engine alone, " + string(direction) + modelNote(d), X: "tasks in flight", Y: "GiB/s",
		}
		for _, r := range e.Results {
			if r.Direction == direction && r.Error == "" {
				c.Add("tasks of "+bench.SizeText(r.Chunk), r.Chunk == largest,
					float64(r.Depth), fmt.Sprint(r.Depth), r.Rate/gibibyte)
			}
		}
		drawn = append(drawn, c)
	}
	return drawn
}

func modelNote(d bench.Device) string {
	note := ", software device"
	if d.Model != "" {
		name, _, _ := strings.Cut(d.Model, ":")
		note = ", time model " + name
	}
	if !d.Moves {
		note += ", no bytes moved"
	}
	return note
}
