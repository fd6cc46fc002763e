package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"text/template"
)

// chart is a diagram of lines over a horizontal axis that is logarithmic to the base 2.
type chart struct {
	title, xName, yName string
	ticks               []tick // in ascending order
	lines               []line
	// logarithmic selects the vertical axis. Otherwise it is linear and starts at zero.
	logarithmic bool
}

// tick is a labelled position on the horizontal axis.
type tick struct {
	value float64
	text  string
}

// line has the points of one candidate, in ascending order of x.
type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// The layout, in pixels.
const (
	chartWidth   = 760
	chartHeight  = 380
	marginLeft   = 64
	marginTop    = 40
	marginBottom = 56
	legendWidth  = 230
	plotWidth    = chartWidth - marginLeft - legendWidth
	plotHeight   = chartHeight - marginTop - marginBottom
)

// The colours can be distinguished with a colour vision deficiency. When all are used, lines differ by their dashes.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"}
	dashes  = []string{"", "7 4", "2 3"}
)

// writeSVG draws charts one below the other.
func writeSVG(w io.Writer, title string, charts []chart) error {
	page := svgPage{Title: title, Width: chartWidth, Height: chartHeight * len(charts)}
	for i, c := range charts {
		page.Charts = append(page.Charts, c.draw(i*chartHeight))
	}
	return svgTemplate().Execute(w, page)
}

// The data of the template.
type (
	svgPage struct {
		Title         string
		Width, Height int
		Charts        []svgChart
	}
	svgChart struct {
		Y                           int
		Title, XName, YName         string
		Left, Top, Right, Bottom    int
		MiddleX, MiddleY, NameBelow int
		Columns, Rows               []svgTick
		Lines                       []svgLine
	}
	svgTick struct {
		At   string // pixels
		Text string
	}
	svgLine struct {
		Name, Colour, Dash string
		Class              string // of the colour
		Points             string
		Dots               []svgDot
		LegendX, LegendEnd int
		LegendY            int
	}
	svgDot struct{ X, Y string }
)

func (c chart) draw(y int) svgChart {
	drawn := svgChart{
		Y: y, Title: c.title, XName: c.xName, YName: c.yName,
		Left: marginLeft, Top: marginTop, Right: marginLeft + plotWidth, Bottom: marginTop + plotHeight,
		MiddleX: marginLeft + plotWidth/2, MiddleY: marginTop + plotHeight/2, NameBelow: chartHeight - 14,
	}
	for _, t := range c.ticks {
		drawn.Columns = append(drawn.Columns, svgTick{At: pixels(c.xPosition(t.value)), Text: t.text})
	}
	up := c.yAxis()
	for _, mark := range up.marks {
		drawn.Rows = append(drawn.Rows, svgTick{At: pixels(up.position(mark)), Text: fmt.Sprintf("%.3g", mark)})
	}
	for i, l := range c.lines {
		drawn.Lines = append(drawn.Lines, c.drawLine(l, i, up))
	}
	return drawn
}

func (c chart) drawLine(l line, index int, up axis) svgLine {
	colour := index % len(colours)
	drawn := svgLine{
		Name: l.name, Colour: colours[colour], Class: fmt.Sprintf("c%d", colour),
		Dash:    dashes[index/len(colours)%len(dashes)],
		LegendX: marginLeft + plotWidth + 14, LegendEnd: marginLeft + plotWidth + 38,
		LegendY: marginTop + 10 + 20*index,
	}
	var points []string
	for _, p := range l.points {
		dot := svgDot{X: pixels(c.xPosition(p.x)), Y: pixels(up.position(p.y))}
		drawn.Dots = append(drawn.Dots, dot)
		points = append(points, dot.X+","+dot.Y)
	}
	drawn.Points = strings.Join(points, " ")
	return drawn
}

// xPosition returns a horizontal position, logarithmic from the first tick to the last.
func (c chart) xPosition(x float64) float64 {
	first, last := math.Log2(c.ticks[0].value), math.Log2(c.ticks[len(c.ticks)-1].value)
	if first == last {
		return marginLeft + plotWidth/2
	}
	const inside = 18 // keeps the outermost points off the frame
	return marginLeft + inside + (plotWidth-2*inside)*(math.Log2(x)-first)/(last-first)
}

func pixels(at float64) string { return fmt.Sprintf("%.1f", at) }

var svgTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("svg").Parse(svgText)) })

// The attributes have the colours for light backgrounds, and for viewers that know no style sheets.
const svgText = `<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}"
 viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="12" fill="#222">
<title>{{html .Title}}</title>
<style>@media (prefers-color-scheme: dark) {
svg { fill: #ddd } .paper { fill: #171c23 } .grid { stroke: #3a424d } .frame { stroke: #ddd }
.c0 { stroke: #4aa8e8; fill: #4aa8e8 } .c1 { stroke: #ff8a3d; fill: #ff8a3d } .c2 { stroke: #2fc79c; fill: #2fc79c }
.c6 { stroke: #aaa; fill: #aaa }
}</style>
<rect width="100%" height="100%" fill="#fff" class="paper"/>
{{- range $chart := .Charts}}
<g transform="translate(0 {{.Y}})">
<text x="{{.Left}}" y="24" font-size="15" font-weight="bold">{{html .Title}}</text>
{{- range .Rows}}
<line x1="{{$chart.Left}}" x2="{{$chart.Right}}" y1="{{.At}}" y2="{{.At}}" stroke="#ddd" class="grid"/>
<text x="{{$chart.Left}}" dx="-8" y="{{.At}}" dy="4" text-anchor="end">{{.Text}}</text>
{{- end}}
{{- range .Columns}}
<line x1="{{.At}}" x2="{{.At}}" y1="{{$chart.Top}}" y2="{{$chart.Bottom}}" stroke="#eee" class="grid"/>
<text x="{{.At}}" y="{{$chart.Bottom}}" dy="18" text-anchor="middle">{{html .Text}}</text>
{{- end}}
<path d="M{{.Left}} {{.Top}}V{{.Bottom}}H{{.Right}}" fill="none" stroke="#222" class="frame"/>
<text x="{{.MiddleX}}" y="{{.NameBelow}}" text-anchor="middle">{{html .XName}}</text>
<text transform="translate(18 {{.MiddleY}}) rotate(-90)" text-anchor="middle">{{html .YName}}</text>
{{- range $line := .Lines}}
<g stroke="{{.Colour}}" fill="{{.Colour}}" class="{{.Class}}"><polyline points="{{.Points}}"
 fill="none" stroke-width="2"{{with .Dash}} stroke-dasharray="{{.}}"{{end}}/>
{{- range .Dots}}<circle cx="{{.X}}" cy="{{.Y}}" r="3"/>{{end}}
<line x1="{{.LegendX}}" x2="{{.LegendEnd}}" y1="{{.LegendY}}" y2="{{.LegendY}}"
 stroke-width="2"{{with .Dash}} stroke-dasharray="{{.}}"{{end}}/></g>
<text x="{{.LegendEnd}}" dx="6" y="{{.LegendY}}" dy="4">{{html .Name}}</text>
{{- end}}
</g>
{{- end}}
</svg>
`
