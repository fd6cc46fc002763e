package bench

import (
	"fmt"
	"io"
	"math/bits"
	"strings"
)

// The sizes of a plot, in pixels: of a panel, where its plot begins, and of that.
const (
	panelWidth, panelHeight = 460, 275
	panelLeft, panelTop     = 50, 40
	plotWidth, plotHeight   = 290, 170
)

// WriteSVG draws the throughput by depth: a panel for each sender and path, and in it a line for each chunk and number
// of lanes.
func WriteSVG(w io.Writer, results []Result) error {
	var panels [][]Result
	highest, deepest := 1.0, 2
	for i, r := range results {
		if i == 0 || r.From != results[i-1].From || r.Path != results[i-1].Path {
			panels = append(panels, nil)
		}
		panels[len(panels)-1] = append(panels[len(panels)-1], r)
		highest, deepest = max(highest, r.Rate), max(deepest, r.Depth)
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		`font-size="11"><rect width="100%%" height="100%%" fill="white"/>`+"\n", panelWidth, panelHeight*len(panels))
	for i, panel := range panels {
		fmt.Fprintf(&svg, `<g transform="translate(%d %d)">`+"\n", panelLeft, i*panelHeight+panelTop)
		drawPanel(&svg, panel, roundUp(highest), float64(bits.Len(uint(deepest))))
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</svg>\n")
	_, err := io.WriteString(w, svg.String())
	return err
}

// roundUp returns the end of a scale for rates up to this one: 4, 8, 20 or 40 times a power of ten.
func roundUp(rate float64) float64 {
	for power := 1.0; ; power *= 10 {
		for _, first := range []float64{4, 8, 20} {
			if end := first * power; end >= rate {
				return end
			}
		}
	}
}

// drawPanel draws the results of one sender and path. The depths have a logarithmic scale up to widest.
func drawPanel(svg *strings.Builder, panel []Result, highest, widest float64) {
	x := func(depth int) float64 { return plotWidth * float64(bits.Len(uint(depth))) / widest }
	y := func(rate float64) float64 { return plotHeight * (1 - rate/highest) }
	fmt.Fprintf(svg, `<text y="-12" font-size="13">from the %s by %s, GB/s</text>`+"\n",
		sideName(panel[0].From), panel[0].Path)
	for step := range 5 {
		rate := highest * float64(step) / 4
		fmt.Fprintf(svg, `<path d="M0 %.1fH%d" stroke="#ddd"/><text x="-6" y="%.1f" text-anchor="end">%s</text>`+"\n",
			y(rate), plotWidth, y(rate)+4, gigabytes(rate))
	}
	fmt.Fprintf(svg, `<text x="%d" y="%d" text-anchor="middle">chunks in flight</text>`+"\n", plotWidth/2,
		plotHeight+34)
	rows, depths := rowsOf(panel)
	for _, depth := range depths {
		fmt.Fprintf(svg, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(depth), plotHeight+16, depth)
	}
	for i, row := range rows {
		colour := fmt.Sprintf("hsl(%d 70%% 40%%)", i*360/len(rows))
		var points strings.Builder
		for _, r := range row {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(r.Depth), y(r.Rate))
		}
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, points.String(), colour)
		fmt.Fprintf(svg, `<text x="%d" y="%d" fill="%s">%s, lanes: %d</text>`+"\n", plotWidth+10, 12+16*i, colour,
			sizeText(row[0].Chunk), row[0].Lanes)
	}
}
