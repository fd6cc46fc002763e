package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// startsTried is how often a side that cannot start is run until the one that waits has heard of it. Once is enough
// unless the machine is so busy that the waiting side does not get to look within half a second.
const startsTried = 20

// TestFailedStartIsTold has one side fail before it could meet the other, which is waiting already: both end with the
// same code, and the one that waited, which would do so for ten minutes, says why.
func TestFailedStartIsTold(t *testing.T) {
	for name, failed := range map[string]struct {
		file, flags string
		code        int
		cause       string
	}{
		"directory missing":     {"/missing/file", "", 5, "missing/file does not exist, and neither does its directory: create"},
		"source is a directory": {"", "", 4, " is a directory: name a regular file"},
		"chunk too large":       {"/other", "--chunk 2097153", 3, "--chunk 2097153 exceeds the limit of 2.0 MiB"},
		"no such CPUs":          {"/other", "--cores 8191", 3, "--cores 8191: this process may use none of these CPUs"},
	} {
		for _, who := range []string{"host", "dpu"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(otherThan(who), 1000)
				lines := map[string]string{
					"host": "dma-copy -p b1:00.1 -f host", "dpu": "dma-copy -p 03:00.1 -r b1:00.1 -f dpu",
				}
				waiting := s.start(otherThan(who), lines[otherThan(who)]+"/file -l INFO --wait 10m")
				if err := waiting.says(regexp.MustCompile("waiting for the peer")); err != nil {
					t.Fatal(err)
				}
				for tried, told := 0, false; !told; told = hasEnded(waiting) {
					if tried++; tried > startsTried {
						t.Fatalf("it was not told: %s", waiting.stderr.String())
					}
					side := s.start(who, lines[who]+failed.file+" "+failed.flags)
					side.ends(failed.code)
					if said := side.stderr.String(); !strings.Contains(said, failed.cause) {
						t.Errorf("the side that failed said %q", said)
					}
				}
				waiting.ends(failed.code)
				said := waiting.stderr.String()
				if !strings.Contains(said, " aborted: ") || !strings.Contains(said, failed.cause) {
					t.Errorf("the side that waited said %q", said)
				}
				s.clean()
			})
		}
	}
}

// hasEnded waits a moment for the end of a process, which may have been told just now.
func hasEnded(s side) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}
