package e2e

import (
	"fmt"
	"regexp"
	"testing"
)

// TestReadersThatGoAway closes the other end of stdout, of stderr or of both before a copy says anything. The copy goes
// on to its end, and says once in the log, if that is still read, that its events are not.
func TestReadersThatGoAway(t *testing.T) {
	gone := regexp.MustCompile(`{"level":"warn",.*"error":"write /dev/stdout: broken pipe".*` +
		`"message":"the reader closed the event output: continuing without events"}`)
	for _, form := range []string{"text", "json"} {
		for _, streams := range [][]string{{"stdout"}, {"stderr"}, {"stdout", "stderr"}} {
			for _, victim := range []string{"host", "dpu"} {
				t.Run(fmt.Sprintf("%s_%s_%s", form, streams, victim), func(t *testing.T) {
					t.Parallel()
					s := newStage(t)
					s.put("host", 1<<20)
					lines := map[string]string{"host": ourHost, "dpu": ourDPU}
					unread := s.startUnread(victim, lines[victim]+"-o "+form, streams...)
					other := s.start(otherThan(victim), lines[otherThan(victim)])
					warned := form == "json" && len(streams) == 1 && streams[0] == "stdout"
					must(t, unread.endsWith(0, warned))
					other.ends(0)
					if said := gone.FindAllString(unread.stderr.String(), -1); warned != (len(said) == 1) {
						t.Errorf("%d warnings:\n%s", len(said), unread.stderr.String())
					}
					s.same()
					s.clean()
				})
			}
		}
	}
}

// The exit code of a copy that fails, or is refused, is that of the cause, whether or not it is read.
func TestFailuresWithoutReader(t *testing.T) {
	cases := []struct {
		line string
		code int
	}{
		{ourHost + "-o json --wait 1ms", exitPeer}, {ourHost + "--wait 1ms", exitPeer},
		{"dma-copy --bad -o json", exitUsage}, {"dma-copy --bad", exitUsage}, {"dma-copy -o json", exitUsage},
	}
	for _, tc := range cases {
		s := newStage(t)
		s.put("host", 1)
		it := s.startUnread("it", tc.line, "stdout", "stderr")
		<-it.ended
		if got := exitCodeOf(it.command.ProcessState); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", tc.line, got, tc.code)
		}
	}
}

// A command that prints a result ends as others do when its reader goes away: by SIGPIPE, without a word.
func TestResultsWithoutReader(t *testing.T) {
	for _, line := range []string{"dma-copy devices", "dma-copy --help", "dma-copy version"} {
		it := newStage(t).startUnread("it", line, "stdout")
		<-it.ended
		if got := exitCodeOf(it.command.ProcessState); got != 141 || it.stderr.String() != "" {
			t.Errorf("%s: exit code %d, stderr %q", line, got, it.stderr.String())
		}
	}
}
