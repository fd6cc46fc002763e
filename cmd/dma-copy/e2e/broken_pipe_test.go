package e2e

import (
	"fmt"
	"regexp"
	"testing"
)

var eventsUnread = regexp.MustCompile(`{"level":"warn",.*"error":"write /dev/stdout: broken pipe".*` +
	`"message":"the reader closed the event output: continuing without events"}`)

// TestTransferWithClosedOutput closes the reader of stdout, of stderr or of both before a transfer prints anything. The
// transfer completes, and a warning in the log, if that is still read, reports once that the events are not.
func TestTransferWithClosedOutput(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		for _, closed := range []closedOutputs{{stdout: true}, {stderr: true}, {stdout: true, stderr: true}} {
			for _, name := range bothSides {
				t.Run(fmt.Sprintf("%s_%+v_%s", format, closed, name), func(t *testing.T) {
					t.Parallel()
					testClosedOutput(newFixture(t), format, closed, name)
				})
			}
		}
	}
}

func testClosedOutput(f *fixture, format string, closed closedOutputs, name string) {
	f.createFile("host", 1<<20)
	lines := map[string]string{"host": hostCommand, "dpu": dpuCommand}
	unread := f.startWith(processOptions{name: name, closed: closed}, lines[name]+"-o "+format)
	peer := f.start(peerOf(name), lines[peerOf(name)])
	wantWarning := format == "json" && closed.stdout && !closed.stderr
	must(f.t, unread.checkExit(exitOK, wantWarning))
	peer.expectExit(exitOK)
	if warnings := eventsUnread.FindAllString(unread.stderr.String(), -1); wantWarning != (len(warnings) == 1) {
		f.t.Errorf("%d warnings:\n%s", len(warnings), unread.stderr.String())
	}
	f.expectSameFiles()
	f.expectClean()
}

// TestFailureWithClosedOutput expects the exit code of a run that fails or is refused to be that of the cause, although
// nothing reads its output.
func TestFailureWithClosedOutput(t *testing.T) {
	t.Parallel()
	cases := []struct {
		line string
		code int
	}{
		{hostCommand + "-o json --wait 1ms", exitPeer},
		{hostCommand + "--wait 1ms", exitPeer},
		{"dma-copy --bad -o json", exitUsage},
		{"dma-copy --bad", exitUsage},
		{"dma-copy -o json", exitUsage},
	}
	for _, tc := range cases {
		f := newFixture(t)
		f.createFile("host", 1)
		run := f.startWith(processOptions{name: "run", closed: closedOutputs{stdout: true, stderr: true}}, tc.line)
		if got := run.exitCode(); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", tc.line, got, tc.code)
		}
	}
}

// TestCommandWithClosedOutput expects a command that prints a result to end as others do when its reader is gone: by
// SIGPIPE, without a message.
func TestCommandWithClosedOutput(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"dma-copy devices", "dma-copy --help", "dma-copy version"} {
		run := newFixture(t).startWith(processOptions{name: "run", closed: closedOutputs{stdout: true}}, line)
		if got := run.exitCode(); got != exitBrokenPipe || run.stderr.String() != "" {
			t.Errorf("%s: exit code %d, stderr %q", line, got, run.stderr.String())
		}
	}
}
