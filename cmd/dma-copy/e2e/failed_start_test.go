package e2e

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startAttempts is how often a side that cannot start is run until the waiting side has heard of it. Once is enough
// unless the machine is so busy that the waiting side does not notice it within half a second.
const startAttempts = 20

// failedStart is a command line that fails before the two sides meet.
type failedStart struct {
	name   string
	path   string // after the side's directory
	flags  string
	code   int
	stderr string
}

// TestFailedStart has one side fail before it meets the other, which already waits: both end with the same code, and
// the waiting side, which would wait for ten minutes, reports the cause.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	for _, failed := range []failedStart{
		{"directory missing", "/missing/file", "", exitTarget,
			"missing/file does not exist, and neither does its directory: create"},
		{"source is a FIFO", "/pipe", "", exitSource, " is neither a regular file nor a directory: name a regular "},
		{"chunk too large", "/other", "--chunk 2097153", exitUsage, "--chunk 2097153 exceeds the limit of 2.0 MiB"},
		{"no such CPUs", "/other", "--cores 1023", exitUsage, "--cores 1023: this process may use none of these CPUs"},
	} {
		for _, name := range bothSides {
			t.Run(failed.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				failed.test(newFixture(t), name)
			})
		}
	}
}

var logWaiting = regexp.MustCompile("waiting for the peer")

func (c failedStart) test(f *fixture, name string) {
	lines := map[string]string{"host": "dma-copy -p b1:00.1 -f host", "dpu": "dma-copy -p 03:00.1 -r b1:00.1 -f dpu"}
	peer := peerOf(name)
	f.createFile(peer, 1000)
	must(f.t, unix.Mkfifo(filepath.Join(f.dir, name, "pipe"), 0o644))
	waiting := f.start(peer, lines[peer]+"/file -l INFO --wait 10m")
	waiting.waitForLog(logWaiting)
	for range startAttempts {
		failing := f.start(name, lines[name]+c.path+" "+c.flags)
		failing.expectExit(c.code)
		failing.expectStderr(c.stderr)
		if waiting.endsWithin(time.Second) {
			break
		}
	}
	if !waiting.hasEnded() {
		f.t.Fatalf("the waiting side was not notified: %s", waiting.stderr.String())
	}
	waiting.expectExit(c.code)
	waiting.expectStderr(" aborted: ", c.stderr)
	f.expectClean()
}

// endsWithin waits at most so long for the end of a process.
func (s side) endsWithin(d time.Duration) bool {
	select {
	case <-s.done:
		return true
	case <-time.After(d):
		return false
	}
}
