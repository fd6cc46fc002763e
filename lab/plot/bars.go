package plot

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"text/template"
)

// Bars is a chart of horizontal bars, in groups of one bar for each series.
type Bars struct {
	Title  string
	Series []string // at most as many as there are strong colours
	Groups []Group
	Mark   float64 // a value with a line across the chart
}

// Group is the bars of one row.
type Group struct {
	Name   string
	Values []float64 // one for each series; 0: none
}

// The layout of bars, in pixels.
const (
	barsWidth   = 760
	barsLeft    = 340 // for the names of groups
	barsRight   = 60  // for the value beside a bar
	barsTop     = 64
	barHeight   = 11
	groupHeight = 2*barHeight + 12
)

// The data of the template of bars.
type (
	barsPage struct {
		Title             string
		Width, Height     int
		Keys              []barKey
		Rows              []barsRow
		Mark, Top, Bottom string
	}
	barKey struct {
		X     int
		Name  string
		Class string
	}
	barsRow struct {
		Name string
		Y    int // the middle
		Bars []bar
	}
	bar struct {
		Y           int
		Length, End string
		Class, Text string
	}
)

// Write draws the bars as SVG.
func (b Bars) Write(w io.Writer) error {
	highest := b.Mark
	for _, group := range b.Groups {
		highest = max(highest, slices.Max(group.Values))
	}
	const span = barsWidth - barsLeft - barsRight
	length := func(value float64) float64 { return span * value / highest }
	height := barsTop + groupHeight*len(b.Groups) + 12
	page := barsPage{
		Title: b.Title, Width: barsWidth, Height: height,
		Mark: pixels(barsLeft + length(b.Mark)), Top: pixels(barsTop - 6), Bottom: pixels(float64(height - 12)),
	}
	for i, name := range b.Series {
		page.Keys = append(page.Keys, barKey{X: barsLeft + 110*i, Name: name, Class: strong(i)})
	}
	for i, group := range b.Groups {
		row := barsRow{Name: group.Name, Y: barsTop + groupHeight*i + barHeight}
		for j, value := range group.Values {
			if value > 0 {
				row.Bars = append(row.Bars, bar{
					Y: barsTop + groupHeight*i + (barHeight+1)*j, Length: pixels(length(value)),
					End: pixels(barsLeft + length(value)), Class: strong(j), Text: fmt.Sprintf("%.2f", value),
				})
			}
		}
		page.Rows = append(page.Rows, row)
	}
	return barsTemplate().Execute(w, page)
}

var barsTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("bars").Parse(frame + barsText))
})

const barsText = `
<text x="14" y="24" font-size="15" font-weight="bold">{{html .Title}}</text>
{{- range .Keys}}
<rect x="{{.X}}" y="38" width="11" height="11" class="{{.Class}}"/>
<text x="{{.X}}" dx="17" y="48">{{html .Name}}</text>
{{- end}}
{{- range $row := .Rows}}
<text x="330" y="{{.Y}}" dy="4" text-anchor="end">{{html .Name}}</text>
{{- range .Bars}}
<rect x="340" y="{{.Y}}" width="{{.Length}}" height="11" class="{{.Class}}"/>
<text x="{{.End}}" dx="5" y="{{.Y}}" dy="9" font-size="10">{{.Text}}</text>
{{- end}}
{{- end}}
<line x1="{{.Mark}}" x2="{{.Mark}}" y1="{{.Top}}" y2="{{.Bottom}}" class="frame" stroke-dasharray="4 3"/>
</svg>
`
