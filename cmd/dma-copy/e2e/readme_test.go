package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the recordings in docs")

var (
	// readmePart is a block of code, or an image that shows what the block before it prints.
	readmePart = regexp.MustCompile("(?ms)^```\n(.*?)^```$|" + `^!\[[^\]]*\]\((docs/recording-[a-z]+\.svg)\)$`)

	// promptLine is a command as it is typed on the host or on the DPU; without a name it is the host.
	promptLine = regexp.MustCompile(`^(host|dpu|)\$ +(.+)$`)
)

// TestReadmeCommands runs the commands of README.md as they stand on the software device, in a shell for each side. Of
// the port only the number is changed, to a free one. The recordings have to show what the commands print, apart from
// figures; with -update they are written.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	session := newReadmeSession(t)
	var last []pane
	commands, recordings := 0, 0
	for _, part := range readmePart.FindAllStringSubmatch(readFile(t, moduleRoot, "README.md"), -1) {
		if part[2] != "" {
			recordings++
			checkRecording(t, filepath.Join(moduleRoot, filepath.FromSlash(part[2])), last)
			continue
		}
		last = panesOf(part[1])
		session.run(t, last)
		for _, p := range last {
			commands += len(p.commands)
		}
	}
	if commands < 20 || recordings < 2 {
		t.Errorf("README.md has %d commands and %d recordings only", commands, recordings)
	}
	compareReadmeCopies(t, filepath.Join(session.dir, "demo", "host"), filepath.Join(session.dir, "demo", "dpu"))
	if _, err := os.Stat(filepath.Join(session.dir, "demo", "soft")); err != nil {
		t.Errorf("the commands do not use a software device of their own: %v", err)
	}
}

// compareReadmeCopies checks that the copies have arrived: the file, the tree without what is excluded, and the stream.
func compareReadmeCopies(t *testing.T, host, dpu string) {
	t.Helper()
	for from, to := range map[string]string{
		"image.bin": "inbox/image.bin", "photos/1.jpg": "inbox/photos/1.jpg",
		"photos/draft.tmp": "inbox/photos/draft.tmp",
	} {
		if readFile(t, host, from) != readFile(t, dpu, to) {
			t.Errorf("%s and %s differ", from, to)
		}
	}
	for name, want := range map[string]bool{"image.bin": true, "photos.tar": true, "photos/draft.tmp": false} {
		if _, err := os.Stat(filepath.Join(dpu, name)); (err == nil) != want {
			t.Errorf("%s on the DPU: %v", name, err)
		}
	}
}

// pane has the commands that a side runs in a block of code, and what they print.
type pane struct {
	side     string
	commands []paneCommand
}

type paneCommand struct{ typed, output string }

// endsWithDaemon reports whether the last command runs until it is interrupted.
func (p pane) endsWithDaemon() bool {
	return strings.HasPrefix(p.commands[len(p.commands)-1].typed, "dma-copy serve ")
}

// panesOf returns the commands of a block of code by side, in the order of the block, none if it has no prompts.
func panesOf(block string) (panes []pane) {
	for line := range strings.Lines(block) {
		match := promptLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			continue
		}
		side := cmp.Or(match[1], "host")
		at := slices.IndexFunc(panes, func(p pane) bool { return p.side == side })
		if at < 0 {
			at = len(panes)
			panes = append(panes, pane{side: side})
		}
		panes[at].commands = append(panes[at].commands, paneCommand{typed: match[2]})
	}
	return panes
}

// readmeSession has the shells of the two sides, which keep their directory and variables from block to block.
type readmeSession struct {
	dir     string
	changes *strings.Replacer // of the commands of a page
	shells  map[string]*shell
}

// newReadmeSession returns a session in which the commands of a page are changed: pairs of old and new texts.
func newReadmeSession(t *testing.T, changes ...string) *readmeSession {
	t.Helper()
	dir := t.TempDir()
	variables, err := prepareDirs(dir)
	must(t, err)
	port, err := freePort()
	must(t, err)
	environment := slices.Concat(os.Environ(), variables, []string{
		"HOME=" + dir,
		"DMA_COPY_WAIT=1m",        // the commands of both sides start at once, and so before a daemon listens
		"DMA_COPY_PROGRESS=never", // how often it is printed depends on the speed of the machine
	})
	s := &readmeSession{
		dir: dir, changes: strings.NewReplacer(append(changes, "7483", fmt.Sprint(port))...),
		shells: map[string]*shell{},
	}
	for _, side := range []string{"host", "dpu"} {
		s.shells[side] = startShell(t, dir, environment)
	}
	return s
}

// run runs the commands of a block: those of one side after each other, those of two sides at the same time. A daemon
// is interrupted when the other side has ended.
func (s *readmeSession) run(t *testing.T, panes []pane) {
	t.Helper()
	ended := make([]chan error, len(panes))
	for i := range panes {
		ended[i] = make(chan error, 1)
		go func() { ended[i] <- s.runPane(&panes[i]) }()
	}
	for i, p := range panes {
		if !p.endsWithDaemon() {
			must(t, <-ended[i])
		}
	}
	for i, p := range panes {
		if p.endsWithDaemon() {
			must(t, s.shells[p.side].interrupt())
			must(t, <-ended[i])
		}
	}
}

// runPane runs the commands of a side, and keeps what each has printed.
func (s *readmeSession) runPane(p *pane) error {
	for i := range p.commands {
		command := &p.commands[i]
		line := s.changes.Replace(command.typed)
		code, output, err := s.shells[p.side].run(line)
		if err != nil || code != 0 {
			return fmt.Errorf("%s$ %s: exit code %d, error %v\n%s", p.side, line, code, err, output)
		}
		command.output = output
	}
	return nil
}
