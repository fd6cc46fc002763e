package main

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// The layout of the picture, in pixels.
const (
	columnPitch = 214
	boxWidth    = 176
	boxHeight   = 42 // with one line of text below the name
	textHeight  = 14
	rowPitch    = 68
	pictureEdge = 30

	portDistance = 26 // between lines at a box
	lineDistance = 9  // between lines, and from a box
)

const pictureFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d">
<title>The packages and their imports</title>
<style>
text { font: 11.5px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; text-anchor: middle; fill: #59636e }
.name { font-size: 13px; font-weight: 600; fill: #1f2328 }
path { fill: none; stroke: #818b98; stroke-width: 1.3; marker-end: url(#head) }
#head path { fill: #818b98; stroke: none; marker-end: none }
rect { stroke-width: 1.2 }
.program { fill: #ddf4ff; stroke: #0969da }
.service { fill: #fbefff; stroke: #8250df }
.transfer { fill: #dafbe1; stroke: #1a7f37 }
.device { fill: #fff8c5; stroke: #9a6700 }
@media (prefers-color-scheme: dark) {
	text { fill: #9198a1 }
	.name { fill: #f0f6fc }
	path { stroke: #656c76 }
	#head path { fill: #656c76 }
	.program { fill: #0c2d4d; stroke: #4493f8 }
	.service { fill: #2b1a4a; stroke: #ab7df8 }
	.transfer { fill: #0f2d1a; stroke: #3fb950 }
	.device { fill: #322500; stroke: #d29922 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
	`<path d="M0 0L8 4L0 8z"/></marker></defs>
%s</svg>
`

// drawPicture returns the picture as SVG, with text as text and colours for light and dark pages.
func drawPicture(boxes []box, arrows [][]int) string {
	var body strings.Builder
	for _, line := range route(boxes, arrows) {
		fmt.Fprintf(&body, "<path d=%q/>\n", curve(line))
	}
	height := 0
	for _, b := range boxes {
		b.draw(&body)
		height = max(height, b.bottom())
	}
	return fmt.Sprintf(pictureFrame, 3*columnPitch+boxWidth+2*pictureEdge, height+pictureEdge/2, body.String())
}

func (b box) left() int   { return b.center() - b.width()/2 }
func (b box) width() int  { return (b.columns-1)*columnPitch + boxWidth }
func (b box) center() int { return pictureEdge + boxWidth/2 + int(b.column*columnPitch) }
func (b box) top() int    { return pictureEdge/2 + b.row*rowPitch }

func (b box) bottom() int { return b.top() + boxHeight + (len(b.lines())-1)*textHeight }

// lines returns the text below the name, in lines that fit into the box.
func (b box) lines() (lines []string) {
	const charWidth = 6
	for word := range strings.FieldsSeq(b.about) {
		if last := len(lines) - 1; last >= 0 && (len(lines[last])+1+len(word))*charWidth <= b.width() {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func (b box) draw(svg *strings.Builder) {
	fmt.Fprintf(svg, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n",
		b.group, b.left(), b.top(), b.width(), b.bottom()-b.top())
	fmt.Fprintf(svg, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n",
		b.center(), b.top()+18, html.EscapeString(strings.TrimPrefix(b.member, "internal/")))
	for i, line := range b.lines() {
		fmt.Fprintf(svg, "<text x=\"%d\" y=\"%d\">%s</text>\n",
			b.center(), b.top()+34+i*textHeight, html.EscapeString(line))
	}
}

// point is a place that a line goes through, from top to bottom.
type point struct{ x, y int }

// route returns a line for each arrow: from the lower edge of a box to the upper edge of another one, beside the boxes
// of the rows between them.
func route(boxes []box, arrows [][]int) (lines [][]point) {
	taken := map[int][]int{} // by row, where lines pass it
	into := arrivals(boxes, arrows)
	for from, targets := range arrows {
		sorted := slices.SortedFunc(slices.Values(targets), func(a, b int) int {
			return cmp.Or(boxes[a].center()-boxes[b].center(), b-a)
		})
		for _, to := range targets { // the nearest first
			i := slices.Index(sorted, to)
			start := boxes[from].port(i, len(sorted), boxes[to].center())
			end := boxes[to].port(slices.Index(into[to], from), len(into[to]), boxes[to].center())
			line := []point{{start, boxes[from].bottom()}}
			for row := boxes[from].row + 1; row < boxes[to].row; row++ {
				x := passage(boxes, row, line[len(line)-1].x, end, taken[row])
				taken[row] = append(taken[row], x)
				y := pictureEdge/2 + row*rowPitch
				line = append(line, point{x, y}, point{x, y + boxHeight})
			}
			lines = append(lines, append(line, point{end, boxes[to].top()}))
		}
	}
	return lines
}

// arrivals returns for each box those that import it, from left to right.
func arrivals(boxes []box, arrows [][]int) (into [][]int) {
	into = make([][]int, len(boxes))
	for from, targets := range arrows {
		for _, to := range targets {
			into[to] = append(into[to], from)
		}
	}
	for _, importers := range into {
		slices.SortFunc(importers, func(a, b int) int { return cmp.Or(boxes[a].center()-boxes[b].center(), a-b) })
	}
	return into
}

// port returns where the i-th of n lines meets the edge of the box. A wide box is left right above the target.
func (b box) port(i, n, target int) int {
	if b.columns > 1 {
		return min(max(target, b.left()+boxWidth/2), b.left()+b.width()-boxWidth/2)
	}
	return b.center() + (2*i-n+1)*portDistance/2
}

// passage returns where a line passes a row: straight above its end or below its last point if no box and no other line
// is there, else in the nearest gap.
func passage(boxes []box, row, last, end int, taken []int) int {
	free := func(x int) bool {
		for _, b := range boxes {
			if b.row == row && x > b.left()-lineDistance && x < b.left()+b.width()+lineDistance {
				return false
			}
		}
		return !slices.ContainsFunc(taken, func(other int) bool { return max(x-other, other-x) < lineDistance })
	}
	for _, x := range []int{end, last} {
		if free(x) {
			return x
		}
	}
	for distance := 0; ; distance++ {
		for _, x := range []int{last - distance, last + distance} {
			if free(x) {
				return x
			}
		}
	}
}

// curve returns the path of a line: vertical at each point, and bent in between.
func curve(line []point) string {
	path := fmt.Sprintf("M%d %d", line[0].x, line[0].y)
	for i, p := range line[1:] {
		before := line[i]
		if p.x == before.x {
			path += fmt.Sprintf("V%d", p.y)
			continue
		}
		middle := (p.y + before.y) / 2
		path += fmt.Sprintf("C%d %d %d %d %d %d", before.x, middle, p.x, middle, p.x, p.y)
	}
	return path
}
