package plot

import "fmt"

// strong returns the class of a strong colour. They can be distinguished with a colour vision deficiency.
func strong(index int) string { return fmt.Sprintf("s%d", index%strongColours) }

const (
	strongColours = 2
	grey          = "other"
)

// frame is the beginning of every chart. The template has Title, Width and Height. The first rules are for light pages.
const frame = `<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}"
 viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="12">
<title>{{html .Title}}</title>
<style>
text { fill: #222 } .paper { fill: #fff } .grid { stroke: #e4e4e4 } .frame { stroke: #222; fill: none }
.s0 { fill: #d55e00 } .s1 { fill: #0072b2 } .other { fill: #70757a }
polyline { fill: none; stroke-width: 1.5 } .thick polyline { stroke-width: 3 }
.s0 polyline, .s0 line { stroke: #d55e00 } .s1 polyline, .s1 line { stroke: #0072b2 }
.other polyline, .other line { stroke: #9aa0a6 } .thick text { font-weight: bold }
.s0 text { fill: #b04d00 } .s1 text { fill: #0062a0 } .other text { fill: #5f6368 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .paper { fill: #171c23 } .grid { stroke: #333b46 } .frame { stroke: #ddd }
.s0 { fill: #ff8a3d } .s1 { fill: #4aa8e8 } .other { fill: #8b929b }
.s0 polyline, .s0 line { stroke: #ff8a3d } .s1 polyline, .s1 line { stroke: #4aa8e8 }
.other polyline, .other line { stroke: #767d87 }
.s0 text { fill: #ff8a3d } .s1 text { fill: #4aa8e8 } .other text { fill: #a8aeb6 }
}
</style>
<rect width="100%" height="100%" class="paper"/>`
