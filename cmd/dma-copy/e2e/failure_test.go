package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// lastLines is how many lines of each stream of a process a failed test prints.
	lastLines = 60

	// answerTime is how long a failed test waits for what a process says next. No test passes because of it.
	answerTime = time.Second
)

// failing is a test, or a script.
type failing interface {
	Failed() bool
	Log(args ...any)
}

// reportIfFailed prints, for a test that has failed, what a process has printed last. One that runs is asked first what
// it waits for.
func (p *process) reportIfFailed(t failing) {
	if !t.Failed() {
		return
	}
	p.ask()
	state := "still runs"
	if p.hasEnded() {
		state = "has ended: " + p.command.ProcessState.String()
	}
	t.Log(fmt.Sprintf("%s (%s) %s\n%s%s", p.name, strings.Join(p.command.Args, " "), state,
		tail("stdout", p.stdout.String()), p.log.tail()))
}

// ask has a dma-copy that runs say what it waits for, and returns when it says nothing more.
func (p *process) ask() {
	if !p.isDMACopy() {
		return
	}
	_ = p.signal(syscall.SIGUSR1) // it may have ended
	for range lastLines {
		select {
		case <-p.stderr.changed():
		case <-p.done:
			return
		case <-time.After(answerTime): // it is stopped, or hangs
			return
		}
	}
}

// tail returns the last lines of a stream below its name; nothing if it is empty.
func tail(stream, text string) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return ""
	}
	left := max(0, len(lines)-lastLines)
	return fmt.Sprintf("%s, after %d other lines:\n%s", stream, left, strings.Join(lines[left:], ""))
}

// A failed test has the last lines of a process, and not those before.
func TestTailOfAStream(t *testing.T) {
	var text strings.Builder
	for i := range lastLines + 3 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	got := tail("stderr", text.String())
	if !strings.HasPrefix(got, "stderr, after 3 other lines:\nline 3\n") || !strings.HasSuffix(got, "line 62\n") {
		t.Errorf("got\n%s", got)
	}
	if got := tail("stdout", ""); got != "" {
		t.Errorf("of an empty stream: %q", got)
	}
	if got, want := tail("stdout", "no end"), "stdout, after 0 other lines:\nno end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
