package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

// TestOpenFilesLimit raises the limit on open files of both sides, from one that hardly starts a program to one that is
// enough for a transfer. Each time the transfer succeeds, or both sides end at once and name the limit instead of the
// peer or the device.
func TestOpenFilesLimit(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		const enough = 64
		f.createFile(sender, 300_000)
		for limit := 8; limit <= enough; limit += 4 {
			must(f.t, os.RemoveAll(f.path(peerOf(sender))))
			f.checkOpenFilesLimit(limit, limit == enough)
		}
		f.expectClean()
	})
}

func (f *fixture) checkOpenFilesLimit(limit int, enough bool) {
	f.t.Helper()
	prefix := f.underLimit(fmt.Sprintf("ulimit -n %d", limit))
	host := f.start("host", prefix+hostCommand)
	dpu := f.start("dpu", prefix+dpuCommand)
	if enough || host.exitCode() == exitOK {
		host.expectExit(exitOK)
		dpu.expectExit(exitOK)
		f.expectSameFiles()
		return
	}
	for _, one := range []side{host, dpu} {
		one.expectExit(exitUsage)
		one.expectStderr("cannot open enough files: ", "raise the limit on open files (ulimit -n 1024)")
	}
}

// TestTreeOpenFiles copies a deep and a wide tree with few open files.
func TestTreeOpenFiles(t *testing.T) {
	t.Parallel()
	for _, shape := range []filetree.Shape{filetree.Deep, filetree.Small} {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.makeTree(sender, shape, 400)
				prefix := f.underLimit(fmt.Sprintf("ulimit -n %d", treeOpenFiles))
				f.startBoth(map[string]string{"host": prefix + hostTree, "dpu": prefix + dpuTree}).expectExit(exitOK)
				f.expectSameTrees(sender, sameTree)
			})
		})
	}
}

// TestLocalTreeOpenFiles does the same with both sides in one process.
func TestLocalTreeOpenFiles(t *testing.T) {
	t.Parallel()
	for _, shape := range []filetree.Shape{filetree.Deep, filetree.Small} {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.makeTree("host", shape, 400)
			prefix := f.underLimit(fmt.Sprintf("ulimit -n %d", treeOpenFiles))
			f.start("local", prefix+"dma-copy local -p b1:00.0 host/tree dpu/tree").expectExit(exitOK)
			f.expectSameTrees("host", sameTree)
		})
	}
}

// treeOpenFiles is a limit on open files that is enough for any tree.
const treeOpenFiles = 256

// TestRuntimeLimits sets limits with which the Go runtime would crash, with a stack trace and exit code 2 or 134.
func TestRuntimeLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for limit, reported := range map[string]string{"ulimit -v 400000": "390 MiB", "ulimit -v 1200000": "1171 MiB"} {
		host := f.start("host", f.underLimit(limit)+hostCommand)
		host.expectExit(exitUsage)
		host.expectStderr("cannot reserve enough memory: the limit on address space is " + reported +
			" of 2048: raise it (ulimit -v unlimited)")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can start the process as a user that has no other processes")
	}
	program, err := exec.LookPath("dma-copy")
	must(t, err)
	must(t, makeReachable(program))
	prefix := strings.Fields(f.underLimit("ulimit -u 1 2>/dev/null || ulimit -p 1"))
	p, err := startProcess(processOptions{
		name: "host", dir: f.dir, environment: f.environment, unprivileged: true,
		argv: append(prefix, strings.Fields(hostCommand)...),
	})
	must(t, err)
	t.Cleanup(p.kill)
	host := side{process: p, t: t}
	host.expectExit(exitUsage)
	host.expectStderr("cannot make enough threads: ", "raise the limit on processes (ulimit -u)")
}

// underLimit returns the prefix of a command line that runs the command under a limit, and without descriptors that the
// tests have inherited.
func (f *fixture) underLimit(limit string) string {
	f.t.Helper()
	script := fmt.Sprintf("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\n%s || exit\nexec \"$@\"\n", limit)
	path := filepath.Join(f.dir, "limited")
	must(f.t, os.WriteFile(path, []byte(script), 0o644))
	// Executed itself, it could still be open for writing in a child of another test that has not called exec yet.
	return "/bin/sh " + path + " "
}
