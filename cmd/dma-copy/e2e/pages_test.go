package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pageCase is a page whose blocks of commands are run.
type pageCase struct {
	shared  bool     // the sides begin in one directory and without settings: the page tells the reader to make them
	before  string   // blocks that are run first: what the page says that the reader has
	changes []string // pairs of old and new texts, for commands and their output
	needs   []string // why blocks are not run, each once and sorted
	check   func(t *testing.T, dir string)
}

// exchangedKeys are the keys of two sides that trust each other, and filesOfTheHost the files of the examples.
const (
	exchangedKeys = "```console\nhost$ dma-copy keys new\ndpu$ dma-copy keys new\n```\n" +
		"```console\nhost$ dma-copy keys show --keys ../dpu/keys | dma-copy keys trust dpu -\n" +
		"dpu$ dma-copy keys show --keys ../host/keys | dma-copy keys trust host -\n```\n"
	filesOfTheHost = "```console\nhost$ head -c 9M /dev/urandom > image.bin && mkdir -p photos/2026\n" +
		"host$ head -c 3M /dev/urandom > photos/2026/1.jpg && touch photos/draft.tmp\n```\n"
)

// pageCases has each page of docs/guide with commands, and README.md.
var pageCases = map[string]pageCase{
	"README.md": {
		shared: true, needs: []string{"checkout", "ssh"},
		check: sameFiles("demo/host/image.bin", "demo/dpu/image.bin",
			"demo/host/photos/1.jpg", "demo/dpu/inbox/photos/1.jpg"),
	},
	"docs/guide/getting-started.md": {
		shared: true,
		check: sameFiles("demo/host/image.bin", "demo/dpu/inbox/from-afar.bin",
			"demo/host/image.bin", "demo/host/again.bin", "demo/host/photos/2026/1.jpg", "demo/dpu/photos/2026/1.jpg"),
	},
	"docs/guide/copying.md": {
		before: exchangedKeys + filesOfTheHost,
		needs:  []string{"hand"},
		check:  sameFiles("host/image.bin", "dpu/copy.bin", "host/image.bin", "host/here/image.bin"),
	},
	"docs/guide/hardware.md": {
		changes: []string{"dma-copy bench", "dma-copy bench --chunks 64KiB --depths 2 --each 1ms"},
		needs:   []string{"card"},
		check:   sameFiles("host/image.bin", "dpu/copy.bin", "host/image.bin", "dpu/inbox/image.bin"),
	},
	"docs/guide/fleet.md": {
		before: strings.NewReplacer("host", "push", "dpu", "node1").Replace(exchangedKeys + filesOfTheHost),
		needs:  []string{"jq", "machines"},
		check:  sameFiles("push/image.bin", "node1/images/image.bin", "push/image.bin", "node1/images/new.bin"),
	},
	"docs/guide/machines.md": {
		before:  strings.NewReplacer("host", "here", "dpu", "lab").Replace(exchangedKeys + filesOfTheHost),
		changes: []string{"lab.example", "127.0.0.1"},
		needs:   []string{"ucx"},
		check:   sameFiles("here/image.bin", "lab/inbox/image.bin", "here/image.bin", "lab/inbox/plain.bin"),
	},
	"docs/guide/service.md": {
		changes: []string{
			"DPU_KEY", "$(dma-copy keys show --keys ../dpu/keys | head -n 1)",
			"HOST_KEY", "$(dma-copy keys show --keys ../host/keys | head -n 1)",
			"dma-copy status", "dma-copy status --runtime-dir ../dpu/run",
		},
		needs: []string{"ssh", "systemd"},
	},
}

// TestPages runs the blocks of commands of the pages as they are, on the software device and in a shell for each side.
// What a page shows as output is compared with what the commands print, apart from figures. Of ports only the number is
// changed, to a free one. docs/internals/testing.md explains the marks of blocks.
func TestPages(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	for page, c := range pageCases {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			session := newPageSession(t, c)
			needs := map[string]bool{}
			for _, b := range blocksOf(c.before + readFile(t, moduleRoot, page)) {
				if b.needs != "" {
					needs[b.needs] = true
					continue
				}
				session.block(t, b)
			}
			session.end(t)
			if got := slices.Sorted(maps.Keys(needs)); !slices.Equal(got, c.needs) {
				t.Errorf("blocks are not run because they need %q, want %q", got, c.needs)
			}
			if c.check != nil {
				c.check(t, session.dir)
			}
		})
	}
}

// TestGuidePagesAreRun fails for a page of the guide with commands that has no case.
func TestGuidePagesAreRun(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(moduleRoot, "docs", "guide", "*.md"))
	must(t, err)
	for _, page := range pages {
		runs := slices.ContainsFunc(blocksOf(readFile(t, page)), func(b pageBlock) bool { return len(b.panes) > 0 })
		if _, known := pageCases["docs/guide/"+filepath.Base(page)]; runs && !known {
			t.Errorf("no case runs the commands of %s", page)
		}
	}
}

// sameFiles returns a check that copies have arrived: pairs of a source and its copy, below the directory of the test.
func sameFiles(pairs ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		for pair := range slices.Chunk(pairs, 2) {
			if readFile(t, dir, pair[0]) != readFile(t, dir, pair[1]) {
				t.Errorf("%s and %s differ", pair[0], pair[1])
			}
		}
	}
}

// pageSession has the shells of the sides, which keep their directory and variables from block to block, and the
// daemons that run in them.
type pageSession struct {
	dir         string
	environment []string
	shared      bool
	changes     *strings.Replacer
	shells      map[string]*shell
	daemons     map[string]runningPane
	last        []pane // of the last block, for a recording of it
}

// runningPane is a pane whose last command is a daemon, which runs until its terminal is needed again.
type runningPane struct {
	pane  *pane
	ended chan error
}

func newPageSession(t *testing.T, c pageCase) *pageSession {
	t.Helper()
	dir := t.TempDir()
	variables, err := prepareDirs(dir)
	must(t, err)
	port, err := freePort()
	must(t, err)
	environment := slices.Concat(os.Environ(), variables, []string{
		"HOME=" + dir,
		"DMA_COPY_WAIT=1m",        // the commands of the sides start at once, and so before a daemon listens
		"DMA_COPY_PROGRESS=never", // how often it is printed depends on the speed of the machine
	})
	return &pageSession{
		dir: dir, environment: environment, shared: c.shared,
		shells: map[string]*shell{}, daemons: map[string]runningPane{},
		changes: strings.NewReplacer(append(c.changes, "7483", fmt.Sprint(port))...),
	}
}

// shell returns the shell of a side. Unless the page sets up the sides itself, each begins in a directory of its own,
// with keys of its own.
func (s *pageSession) shell(t *testing.T, side string) *shell {
	t.Helper()
	if s.shells[side] == nil {
		dir, environment := s.dir, s.environment
		if !s.shared {
			dir = filepath.Join(s.dir, side)
			must(t, os.MkdirAll(dir, 0o755))
			environment = slices.Concat(environment, []string{
				"DMA_COPY_KEYS=" + filepath.Join(dir, "keys"), "DMA_COPY_RUNTIME_DIR=" + filepath.Join(dir, "run"),
			})
		}
		s.shells[side] = startShell(t, dir, environment)
	}
	return s.shells[side]
}

// block runs the commands of a block, writes the file that it shows, or compares a recording of the block before it.
func (s *pageSession) block(t *testing.T, b pageBlock) {
	t.Helper()
	if b.recording != "" {
		s.end(t)
		checkRecording(t, filepath.Join(moduleRoot, filepath.FromSlash(b.recording)), s.last)
		return
	}
	if b.file != "" {
		must(t, os.WriteFile(filepath.Join(s.dir, filepath.FromSlash(b.file)), []byte(b.text), 0o600))
		return
	}
	s.last = b.panes
	s.run(t, b.panes)
}

// run runs the commands of one side after each other, those of several sides at the same time. Daemons go on.
func (s *pageSession) run(t *testing.T, panes []pane) {
	t.Helper()
	ended := make([]chan error, len(panes))
	for i := range panes {
		s.stop(t, panes[i].side)
		shell := s.shell(t, panes[i].side)
		ended[i] = make(chan error, 1)
		go func() { ended[i] <- s.runPane(shell, &panes[i]) }()
	}
	for i := range panes {
		if p := &panes[i]; p.endsWithDaemon() {
			s.daemons[p.side] = runningPane{p, ended[i]}
		} else {
			must(t, <-ended[i])
			s.checkOutput(t, p)
		}
	}
}

// runPane runs the commands of a side, and keeps what each has printed.
func (s *pageSession) runPane(shell *shell, p *pane) error {
	for i := range p.commands {
		command := &p.commands[i]
		line := s.changes.Replace(command.typed)
		code, output, err := shell.run(line)
		if err != nil || (code != 0) != command.fails() {
			return fmt.Errorf("%s$ %s: exit code %d, error %v\n%s", p.side, line, code, err, output)
		}
		command.output = output
	}
	return nil
}

// stop interrupts the daemon that runs in the terminal of a side, if there is one.
func (s *pageSession) stop(t *testing.T, side string) {
	t.Helper()
	if d, runs := s.daemons[side]; runs {
		delete(s.daemons, side)
		must(t, s.shells[side].interrupt())
		must(t, <-d.ended)
		s.checkOutput(t, d.pane)
	}
}

func (s *pageSession) end(t *testing.T) {
	t.Helper()
	for _, side := range slices.Collect(maps.Keys(s.daemons)) {
		s.stop(t, side)
	}
}

func (s *pageSession) checkOutput(t *testing.T, p *pane) {
	t.Helper()
	for _, c := range p.commands {
		if c.shown != "" && !sameOutput(s.changes.Replace(c.shown), c.output) {
			t.Errorf("the page shows for %s$ %s\n%s\nit printed\n%s", p.side, c.typed, c.shown, c.output)
		}
	}
}
