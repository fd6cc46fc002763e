package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrNothingToPlot means that no candidate succeeded, or that the record has only trees, of which there is no chart.
var ErrNothingToPlot = errors.New("nothing to plot")

// Plot draws a record as SVG: the throughput of copies over their size, and for each direction the throughput of the
// engine over its depth.
func (r *Record) Plot(w io.Writer) error {
	var charts []chart
	if r.Copies != nil {
		charts = append(charts, r.Copies.chart())
	}
	if r.Engine != nil && r.Device != nil {
		charts = append(charts, r.Engine.charts(*r.Device)...)
	}
	charts = slices.DeleteFunc(charts, func(c chart) bool { return len(c.lines) == 0 })
	if len(charts) == 0 {
		return ErrNothingToPlot
	}
	return writeSVG(w, r.Program+", "+r.Date, charts)
}

func (c *CopyRecord) chart() chart {
	drawn := chart{
		title: fmt.Sprintf("Copies on %s, durability %s, processes included", c.FileSystem, c.Durability),
		xName: "file size", yName: "GiB/s", logarithmic: true,
	}
	for _, r := range c.Results {
		if r.Error == "" {
			drawn.plot(c.label(r), point{float64(r.Bytes), r.Rate / gibibyte}, sizeText(r.Bytes))
		}
	}
	drawn.sort()
	return drawn
}

func (e *EngineRecord) charts(d Device) (drawn []chart) {
	for _, direction := range distinct(e.Results, func(r EngineResult) Direction { return r.Direction }) {
		c := chart{title: "Engine alone, " + string(direction) + modelNote(d), xName: "tasks in flight", yName: "GiB/s"}
		for _, r := range e.Results {
			if r.Direction == direction && r.Error == "" {
				c.plot("tasks of "+sizeText(r.Chunk), point{float64(r.Depth), r.Rate / gibibyte}, fmt.Sprint(r.Depth))
			}
		}
		c.sort()
		drawn = append(drawn, c)
	}
	return drawn
}

func modelNote(d Device) string {
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

// plot adds a point to the line with that name.
func (c *chart) plot(name string, p point, tickText string) {
	at := slices.IndexFunc(c.lines, func(l line) bool { return l.name == name })
	if at < 0 {
		at, c.lines = len(c.lines), append(c.lines, line{name: name})
	}
	c.lines[at].points = append(c.lines[at].points, p)
	if !slices.ContainsFunc(c.ticks, func(t tick) bool { return t.value == p.x }) {
		c.ticks = append(c.ticks, tick{p.x, tickText})
	}
}

func (c *chart) sort() {
	slices.SortFunc(c.ticks, func(a, b tick) int { return cmp.Compare(a.value, b.value) })
	for _, l := range c.lines {
		slices.SortFunc(l.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
}
