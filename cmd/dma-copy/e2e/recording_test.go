package e2e

import (
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the recordings in docs")

// The layout of a recording, in pixels. The size of a character is that of the monospaced fonts of common systems.
const (
	paneMargin   = 16
	paneTitle    = 28
	lineHeight   = 18
	charWidth    = 7.9
	paneDistance = 12
)

const recordingStyle = `text {
	font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
	white-space: pre; fill: #1f2328;
}
rect { fill: #f6f8fa; stroke: #d1d9e0 }
.title { font-weight: bold; fill: #59636e }
.prompt { fill: #0969da }
.ok { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
	text { fill: #f0f6fc }
	rect { fill: #151b23; stroke: #3d444d }
	.title { fill: #9198a1 }
	.prompt { fill: #4493f8 }
	.ok { fill: #3fb950 }
}`

const recordingFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" ` +
	`xml:space="preserve">
<style>
%s
</style>
%s</svg>
`

// drawRecording returns a picture of terminals, one below the other, in which the text is text. Its colours follow the
// reader's preference for light or dark.
func drawRecording(panes []pane) string {
	var body strings.Builder
	width, y := 0.0, 1
	for _, p := range panes {
		for _, line := range p.lines() {
			width = max(width, 2*paneMargin+charWidth*float64(utf8.RuneCountInString(line)))
		}
	}
	for _, p := range panes {
		y = drawPane(&body, p, y, int(width)) + paneDistance
	}
	return fmt.Sprintf(recordingFrame, int(width)+2, y-paneDistance+1, recordingStyle, body.String())
}

// drawPane draws the terminal of a side from y on, and returns where it ends.
func drawPane(svg *strings.Builder, p pane, y, width int) (end int) {
	lines := p.lines()
	height := paneTitle + len(lines)*lineHeight + paneMargin
	fmt.Fprintf(svg, "<rect x=\"1\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", y, width, height)
	fmt.Fprintf(svg, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", paneMargin, y+20, sideTitle(p.side))
	for i, line := range lines {
		fmt.Fprintf(svg, "<text x=\"%d\" y=\"%d\">%s</text>\n", paneMargin, y+paneTitle+(i+1)*lineHeight, markUp(line))
	}
	return y + height
}

func sideTitle(side string) string {
	if side == "dpu" {
		return "DPU"
	}
	return side
}

// markUp returns a line of a terminal for SVG, with colours for the prompt and for success.
func markUp(line string) string {
	escaped := html.EscapeString(line)
	for start, class := range map[string]string{"$ ": "prompt", "ok ": "ok", "ready ": "ok"} {
		if rest, found := strings.CutPrefix(escaped, start); found {
			return fmt.Sprintf("<tspan class=%q>%s</tspan>%s", class, start, rest)
		}
	}
	return escaped
}

// lines returns the commands of a pane with their output.
func (p pane) lines() (lines []string) {
	for _, command := range p.commands {
		lines = append(lines, "$ "+command.typed)
		for line := range strings.Lines(command.output) {
			line = readersFile.ReplaceAllString(strings.TrimRight(line, "\n"), "alice@$1:/home/alice/demo/$1/")
			lines = append(lines, readersMachine.ReplaceAllString(line, "$1 says it is alice@dpu"))
		}
	}
	return lines
}

var (
	// readersFile is where the user of the tests has the files of a side.
	readersFile = regexp.MustCompile(`\S+@\S+:\S*/demo/(host|dpu)/`)

	// readersMachine is the user and machine of the tests, which a daemon of the DPU names.
	readersMachine = regexp.MustCompile(`(^peer  dpu: .*;) says it is \S+@\S+$`)
)

var (
	textOfRecording = regexp.MustCompile(`(?m)^<text[^>]*>(.*)</text>$`)
	tagOfRecording  = regexp.MustCompile(`</?tspan[^>]*>`)

	// What differs between two runs: figures with their units, digests, the words of a key and the version; and the
	// stage that took the most time.
	figure  = regexp.MustCompile(`[0-9][0-9.]*( ?([KMG]iB|ns|us|µs|ms|s|m)\b)?`)
	changes = regexp.MustCompile(`(crc32c|blake3):[0-9a-f]+|key: [a-z ]+|dma-copy \S+ on |most: .*`)
)

// checkRecording compares the text of a recording with what the commands have printed now, or writes the recording.
func checkRecording(t *testing.T, file string, panes []pane) {
	t.Helper()
	drawn := drawRecording(panes)
	if *update {
		must(t, os.WriteFile(file, []byte(drawn), 0o644))
		return
	}
	if shown, want := recordedText(readFile(t, file)), recordedText(drawn); shown != want {
		t.Errorf("%s shows, apart from figures,\n%s\nwant (`make recordings` writes it)\n%s", file, shown, want)
	}
}

// recordedText returns the lines of a recording without what differs between two runs.
func recordedText(svg string) string {
	var text strings.Builder
	for _, match := range textOfRecording.FindAllStringSubmatch(svg, -1) {
		line := html.UnescapeString(tagOfRecording.ReplaceAllString(match[1], ""))
		text.WriteString(figure.ReplaceAllString(changes.ReplaceAllString(line, "X"), "N") + "\n")
	}
	return text.String()
}

func TestRecordedText(t *testing.T) {
	panes := []pane{{"dpu", []paneCommand{
		{
			typed:  "dma-copy a && b",
			output: "ok    got a<b  3 MiB in 20.5ms (146 MiB/s)  crc32c:00ff\ntime  most: write 3%\n",
		},
	}}}
	const want = "DPU\n$ dma-copy a && b\nok    got a<b  N in N (N/s)  X\ntime  X\n"
	if got := recordedText(drawRecording(panes)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
