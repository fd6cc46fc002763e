package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// slowly keeps a DPU in the middle of a copy of slowSize bytes for minutes, and lets it say when it is there.
const (
	slowly   = "DMA_COPY_SOFT_LIMITS=task_latency_us=100000 " + ourDPU + "-l INFO --chunk 4096 --depth 1 "
	slowSize = 4 << 20
)

var copying = regexp.MustCompile(`"message":"copying"`)

// interruption is a signal to one side, and how both end.
type interruption struct {
	signal           syscall.Signal
	code             int
	other, reference int // of the other side, in each protocol: the reference's has no words for the cause
}

// TestInterruptedDuringCopy ends either side in the middle of a copy. A signal that can be handled is the exit code of both sides,
// and a death is noticed. The receiver has no file under its name, and the next copy works.
func TestInterruptedDuringCopy(t *testing.T) {
	defaultHangup(t)
	for _, end := range []interruption{
		{syscall.SIGINT, 130, 130, 1}, {syscall.SIGTERM, 143, 143, 1}, {syscall.SIGHUP, 129, 129, 1},
		{syscall.SIGKILL, 137, 7, 7},
	} {
		for _, victim := range []string{"host", "dpu"} {
			for _, sender := range []string{"host", "dpu"} {
				name := fmt.Sprintf("%s_%s_%s_sends", unix.SignalName(end.signal), victim, sender)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					end.strikes(newStage(t), victim, sender)
				})
				t.Run(name+"_reference", func(t *testing.T) {
					t.Parallel()
					end.strikesReference(newStage(t), victim, sender)
				})
			}
		}
	}
}

// strikes leaves a part that the next copy may go on with, whoever was hit.
func (i interruption) strikes(s *stage, victim, sender string) {
	i.hits(s, victim, sender, slowly, i.other)
	s.recovers(sender, false)
}

// strikesReference leaves nothing but what a killed process has no time to remove.
func (i interruption) strikesReference(s *stage, victim, sender string) {
	i.hits(s, victim, sender, slowly+referenceOnly, i.reference)
	if i.signal != syscall.SIGKILL {
		s.clean()
	}
	s.recovers(sender, partHasBytes(s.t, filepath.Join(s.folder, otherThan(sender))))
}

// partHasBytes reports whether a receiver's partial file, if there is one, is more than a name: where the file
// system has files without names, what cannot be resumed is gone with the process.
func partHasBytes(t *testing.T, folder string) bool {
	t.Helper()
	part, err := os.Stat(filepath.Join(folder, partOfFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	must(t, err)
	return part.Size() > 0
}

func (i interruption) hits(s *stage, victim, sender, dpu string, other int) {
	s.put(sender, slowSize)
	sides := map[string]side{"host": s.start("host", ourHost), "dpu": s.start("dpu", dpu)}
	if err := sides["dpu"].says(copying); err != nil {
		s.t.Fatal(err)
	}
	if err := sides[victim].signal(i.signal); err != nil {
		s.t.Fatal(err)
	}
	sides[victim].ends(i.code)
	sides[otherThan(victim)].ends(other)
	s.absent(otherThan(sender))
}

func otherThan(side string) string {
	if side == "host" {
		return "dpu"
	}
	return "host"
}

// TestHangupUnderNohup sends SIGHUP to either side in the middle of a copy. Where it was ignored at the start, as under
// nohup, the copy goes on to its end.
func TestHangupUnderNohup(t *testing.T) {
	for _, victim := range []string{"host", "dpu"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put("host", slowSize/4)
			sides := map[string]side{
				"host": s.start("host", "nohup "+ourHost),
				"dpu":  s.start("dpu", "nohup "+ourDPU+"-l INFO --bwlimit 2M"),
			}
			must(t, sides["dpu"].says(copying))
			must(t, sides[victim].signal(syscall.SIGHUP))
			for _, one := range sides {
				one.ends(0)
			}
			s.same()
			s.clean()
		})
	}
}
