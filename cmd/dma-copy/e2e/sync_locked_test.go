package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSyncKeepsOthersOut runs commands while a sync --delete is deleting, which goes on when its lines are read. What
// would store something where it deletes, or delete what it has stored, is refused with 5, also without the daemon.
// Copies beside it are made.
func TestSyncKeepsOthersOut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]heldSync{
		"directory": {
			line: "sync --delete=force host/empty/. :files/in/a", filled: "dpu/share/in/a",
			refused: []string{
				"push host/x :files/in/a/sub/x", "push host/file :files/in/a/file",
				"push host/file :files/in/a/sub/file",
				"sync --delete=force host/x :files/in/a/sub", "sync --delete=force host/x :files/in/a",
				"sync --delete=force host/x :files/in", "push host/x/. :files/in", "local host/x dpu/share/in/a/sub/x",
			},
			made: []string{
				"push host/x :files/in/b", "sync --delete=force host/x :files/in/c", "push host/file :files/in/",
				"local host/x dpu/share/in/d",
			},
		},
		"share": {
			line: "sync --delete=force host/empty/. :files", filled: "dpu/share",
			refused: []string{
				"push host/x :files/in/x", "push host/file :files/", "sync --delete=force host/x/. :files",
				"push host/x/. :files/", "local host/x dpu/share/x",
			},
			made: []string{"local host/x dpu/other"},
		},
		"pull": {
			line: "sync --delete=force :files/empty/. host/in/a", filled: "host/in/a",
			refused: []string{
				"pull :files/x host/in/a/sub/x", "pull :files/x/. host/in", "sync --delete=force :files/x host/in",
				"local dpu/share/x host/in/a/sub/x",
			},
			made: []string{"pull :files/x host/in/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

// heldSync is a sync that deletes what a directory is filled with.
type heldSync struct {
	line, filled  string
	refused, made []string // commands meanwhile
}

func (h heldSync) run(t *testing.T) {
	f := newDaemonFixture(t, "dpu")
	for _, side := range []string{f.local(), f.share()} {
		for _, path := range []string{"/x", "/empty", "/in/a/sub"} {
			must(t, os.MkdirAll(side+path, 0o755))
		}
		must(t, os.WriteFile(side+"/x/file", nil, 0o644))
	}
	must(t, os.WriteFile(f.local("file"), nil, 0o644))
	for i := range 500 { // so that the lines about them are more than the pipe takes
		must(t, os.WriteFile(fmt.Sprintf("%s/%s/%0100d", f.dir, h.filled, i), nil, 0o644))
	}
	d := f.serve("")
	sync, rest := f.commandWithFullPipe(h.line, "deleted ")
	ends := map[int][]side{}
	for code, lines := range map[int][]string{exitTarget: h.refused, exitOK: h.made} {
		for _, line := range lines {
			ends[code] = append(ends[code], f.commandBeside(line))
		}
	}
	for code, commands := range ends {
		for _, command := range commands {
			command.expectExit(code)
			if code == exitTarget {
				command.expectStderr("another process")
			}
		}
	}
	rest()
	sync.expectExit(exitOK)
	d.stop()
}

// commandBeside starts a command of the service, or local with another function than the daemon has.
func (f *daemonFixture) commandBeside(line string) side {
	if strings.HasPrefix(line, "local ") {
		return f.start("local", "dma-copy "+line+" -p b1:00.0")
	}
	return f.command(line)
}
