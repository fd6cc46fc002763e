package main

import (
	"fmt"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// slowly keeps a DPU in the middle of a copy of slowSize bytes for minutes, and lets it say when it is there.
const (
	slowly   = "DMA_COPY_SOFT_LIMITS=task_latency_us=100000 " + ourDPU + "-l INFO --chunk 4096 --depth 1"
	slowSize = 4 << 20
)

var copying = regexp.MustCompile(`"message":"copying"`)

// interruption is a signal to one side, and how both end.
type interruption struct {
	signal      syscall.Signal
	code, other int
}

// TestInterruptedDuringCopy ends either side in the middle of a copy. A signal that can be handled is the exit code, and
// the other side is told; a death is noticed. The receiver has no file, and the next copy works.
func TestInterruptedDuringCopy(t *testing.T) {
	for _, end := range []interruption{{syscall.SIGINT, 130, 1}, {syscall.SIGTERM, 143, 1}, {syscall.SIGKILL, 137, 7}} {
		for _, victim := range []string{"host", "dpu"} {
			for _, sender := range []string{"host", "dpu"} {
				t.Run(fmt.Sprintf("%s_%s_%s_sends", unix.SignalName(end.signal), victim, sender), func(t *testing.T) {
					t.Parallel()
					end.strikes(newStage(t), victim, sender)
				})
			}
		}
	}
}

func (i interruption) strikes(s *stage, victim, sender string) {
	s.put(sender, slowSize)
	sides := map[string]side{"host": s.start("host", ourHost), "dpu": s.start("dpu", slowly)}
	if err := sides["dpu"].says(copying); err != nil {
		s.t.Fatal(err)
	}
	if err := sides[victim].signal(i.signal); err != nil {
		s.t.Fatal(err)
	}
	sides[victim].ends(i.code)
	sides[otherThan(victim)].ends(i.other)
	s.absent(otherThan(sender))
	if i.signal != syscall.SIGKILL {
		s.clean()
		victim = ""
	}
	s.recovers(sender, victim)
}

func otherThan(side string) string {
	if side == "host" {
		return "dpu"
	}
	return "host"
}
