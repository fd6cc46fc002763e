package e2e

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageBlock is a block of a page that its test runs or uses.
type pageBlock struct {
	panes     []pane
	needs     string // why the commands are not run
	recording string // a picture of what the block before it prints
	file      string // side/name of a file whose content is text
	text      string
}

// pane has the commands that a side runs in a block of code, and what they print.
type pane struct {
	side     string
	commands []paneCommand
}

// paneCommand is a line as it is typed, what the page shows as its output, and what it has printed.
type paneCommand struct{ typed, shown, output string }

// fails reports whether the page shows the line of a failure.
func (c paneCommand) fails() bool {
	return strings.HasPrefix(c.shown, "dma-copy: ") || strings.Contains(c.shown, "\ndma-copy: ")
}

// endsWithDaemon reports whether the last command runs until it is interrupted.
func (p pane) endsWithDaemon() bool {
	return strings.HasPrefix(p.commands[len(p.commands)-1].typed, "dma-copy serve ")
}

var (
	// pagePart is a block of code with its language and what follows that, a heading, or a recording.
	pagePart = regexp.MustCompile("(?ms)^```(\\w+)( [^\\n]*)?\\n(.*?)^```$|" +
		`^(#+ )[^\n]*$|^!\[[^\]]*\]\((docs/recording-[a-z]+\.svg)\)$`)

	// promptLine is a command as it is typed on a side; without a name it is the host.
	promptLine = regexp.MustCompile(`^([a-z0-9]*)\$ +(.+)$`)
)

// blocksOf returns what a page has to run, in its order. The language and the words behind it say what a block is:
//
//	console               commands behind the prompts of their sides, with their output
//	sh SIDE, text SIDE    commands of one terminal, to be pasted; the output of the last of them
//	json SIDE/FILE        the content of a file
//	... needs=REASON      commands that cannot be run by a test
//
// Blocks of two sides without a heading between them are one: their commands run at the same time.
func blocksOf(page string) (blocks []pageBlock) {
	var pasted pageBlock
	flush := func() {
		if len(pasted.panes) > 0 {
			blocks = append(blocks, pasted)
		}
		pasted = pageBlock{}
	}
	for _, part := range pagePart.FindAllStringSubmatch(page, -1) {
		language, info, text := part[1], strings.TrimSpace(part[2]), part[3]
		needs, isMarked := strings.CutPrefix(info, "needs=")
		at := slices.IndexFunc(pasted.panes, func(p pane) bool { return p.side == info })
		if language == "text" && at >= 0 {
			commands := pasted.panes[at].commands
			commands[len(commands)-1].shown = text
			continue
		}
		if language != "sh" || at >= 0 || isMarked {
			flush()
		}
		switch {
		case isMarked:
			blocks = append(blocks, pageBlock{needs: needs})
		case part[5] != "":
			blocks = append(blocks, pageBlock{recording: part[5]})
		case language == "console":
			blocks = append(blocks, pageBlock{panes: panesOf(text)})
		case language == "sh" && info != "":
			pasted.panes = append(pasted.panes, pane{side: info, commands: pastedCommands(text)})
		case language == "json" && info != "":
			blocks = append(blocks, pageBlock{file: info, text: text})
		}
	}
	flush()
	return blocks
}

// panesOf returns the commands of a block of code by side, in the order of the block, with the lines below each.
func panesOf(block string) (panes []pane) {
	var last *paneCommand
	for line := range strings.Lines(block) {
		match := promptLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			if last != nil {
				last.shown += line
			}
			continue
		}
		side := cmp.Or(match[1], "host")
		at := slices.IndexFunc(panes, func(p pane) bool { return p.side == side })
		if at < 0 {
			at = len(panes)
			panes = append(panes, pane{side: side})
		}
		panes[at].commands = append(panes[at].commands, paneCommand{typed: match[2]})
		last = &panes[at].commands[len(panes[at].commands)-1]
	}
	return panes
}

func pastedCommands(text string) (commands []paneCommand) {
	for line := range strings.Lines(text) {
		commands = append(commands, paneCommand{typed: strings.TrimSuffix(line, "\n")})
	}
	return commands
}

var (
	// pageChanges differ between two runs, as figures do: digests, keys and their words, who the peer is, and the stage
	// that took the most time.
	pageChanges = regexp.MustCompile(`(crc32c|xxh3|blake3|sha256):[0-9a-f]+|` +
		`dma-copy-v1:[A-Za-z0-9_-]+( [^ ]+@[^ ]+)?|^# [a-z ]+$|(key|words|trusted [a-z]+): [a-z ]+$|` +
		`says it is .*|peer +[^ ]+@.*|most: .*|dma-copy \S+ on `)
	pageFigure = regexp.MustCompile(`[0-9]([0-9.,]*[0-9])?( ?([KMG]iB|ns|us|µs|ms|s|m)\b)?`)
	spaces     = regexp.MustCompile(` +`)
)

// sameOutput compares the output that a page shows with what was printed, without what differs between two runs. "..."
// stands for any text, and on a line of its own for any lines.
func sameOutput(shown, printed string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(comparable(line)), `\.\.\.`, ".*") + `\n`)
	}
	var got strings.Builder
	for line := range strings.Lines(printed) {
		if !strings.HasPrefix(line, "waiting for ") { // printed on a slow machine only
			got.WriteString(comparable(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(got.String())
}

func comparable(line string) string {
	line = pageFigure.ReplaceAllString(pageChanges.ReplaceAllString(line, "X"), "N")
	return strings.TrimRight(spaces.ReplaceAllString(line, " "), " ")
}

func TestSameOutput(t *testing.T) {
	const printed = "ok    sent a  3 MiB in 20.5ms (146 MiB/s)  crc32c:00ff\n      verified\n" +
		"path  soft 1\ntime  most: write 3%\n"
	for shown, want := range map[string]bool{
		"ok    sent a  95 MiB in 1s (9 GiB/s)  crc32c:1234\n...\n": true,
		"ok    sent a  ...\n      verified\n...\n":                 true,
		"ok    sent b  ...\n...\n":                                 false,
		"ok    sent a  ...\n":                                      false,
	} {
		if got := sameOutput(shown, printed); got != want {
			t.Errorf("%q: %v", shown, got)
		}
	}
}

func TestBlocksOf(t *testing.T) {
	page := "```sh host\nexport A=1\ndma-copy -f a\n```\n```text host\nok\n```\n```sh dpu\ndma-copy -f b\n```\n## B\n" +
		"```console\nhost$ x\ndpu$ y\nz\n```\n```console needs=card\nhost$ w\n```\n```json host/c.json\n{}\n```\n"
	blocks := blocksOf(page)
	if len(blocks) != 4 || len(blocks[0].panes) != 2 || blocks[0].panes[0].commands[1].shown != "ok\n" ||
		blocks[1].panes[1].commands[0] != (paneCommand{typed: "y", shown: "z\n"}) || blocks[2].needs != "card" ||
		blocks[3].file != "host/c.json" || blocks[3].text != "{}\n" {
		t.Errorf("%+v", blocks)
	}
}
