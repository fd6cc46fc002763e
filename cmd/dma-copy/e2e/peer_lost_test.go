package e2e

import (
	"strings"
	"testing"
)

// The phases of a copy, as the steps of the reference's model after which it dies or stops, and how our side ends then.
// The second code is for the case that the DPU sends.
var (
	dpuDeaths = []phase{
		{"direction-sent", 7, 7},
		{"export-received", 7, 7},
		{"copied", 7, 7},
		{"status-sent", 0, 0}, // the copy is complete, whatever becomes of the DPU
	}
	dpuSilences = append([]phase{{"connected", 7, 7}, {"direction-received", 7, 7}}, dpuDeaths...)

	// dpuEarlyDeaths come before the DPU has answered, and so look to the host like being turned away. It tries
	// again, and copies with the next DPU.
	dpuEarlyDeaths = []phase{{"connected", 0, 0}, {"direction-received", 0, 0}}
)

// A host that dies after the DPU's STATUS(1) is what one that is done looks like. One that only falls silent leaves open
// whether it saved what it received; where it had nothing to save, its silence costs nothing.
var (
	hostDeaths = []phase{
		{"connected", 7, 7},
		{"direction-sent", 7, 7},
		{"direction-received", 7, 7},
		{"export-sent", 7, 7},
		{"status-received", 0, 0},
	}
	hostSilences = []phase{
		{"connected", 7, 7},
		{"direction-sent", 7, 7},
		{"direction-received", 7, 7},
		{"export-sent", 0, 7},
		{"status-received", 0, 7},
	}
)

type phase struct {
	step                string
	hostSends, dpuSends int // exit codes of our side
}

func (p phase) code(sender string) int {
	if sender == "host" {
		return p.hostSends
	}
	return p.dpuSends
}

// eachPhase runs a test for every phase in both directions.
func eachPhase(t *testing.T, phases []phase, test func(s *stage, p phase, sender string)) {
	for _, p := range phases {
		for _, sender := range []string{"host", "dpu"} {
			t.Run(p.step+"_"+sender+"_sends", func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, 1_000_000)
				test(s, p, sender)
			})
		}
	}
}

// judge expects our side to have ended as the phase demands, with the file or without.
func (s *stage) judge(ours side, p phase, sender, receives string) {
	s.t.Helper()
	ours.ends(p.code(sender))
	if p.code(sender) != 0 && receives == otherThan(sender) {
		s.absent(receives)
	}
}

// blames expects that where our side failed, it reports the peer's timeout: the peer gives up too, much later.
func (s *stage) blames(ours side, p phase, sender string) {
	s.t.Helper()
	const silence = "timeout: no message from the "
	if said := ours.stderr.String(); p.code(sender) != 0 && !strings.Contains(said, silence) {
		s.t.Errorf("our side said %q, want %q", said, silence)
	}
}

// TestDPUDies kills an unmodified DPU in every phase after its answer.
func TestDPUDies(t *testing.T) {
	t.Parallel()
	eachPhase(t, dpuDeaths, func(s *stage, p phase, sender string) {
		dpu := s.start("dpu", refDPU+"-die-after "+p.step)
		host := s.start("host", ourHost)
		dpu.ends(137)
		s.judge(host, p, sender, "host")
		s.recovers(sender, false)
	})
}

// TestDPUDiesBeforeItsAnswer kills an unmodified DPU while the host may still look for another.
func TestDPUDiesBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	eachPhase(t, dpuEarlyDeaths, func(s *stage, p phase, sender string) {
		dpu := s.start("dpu", refDPU+"-die-after "+p.step)
		host := s.start("host", ourHost+"--wait 10m")
		dpu.ends(137)
		next := s.start("dpu", ourDPU)
		s.judge(host, p, sender, "host")
		next.ends(0)
		s.same()
		s.clean()
	})
}

// TestDPUFallsSilent stops an unmodified DPU in every phase, with the connection open.
func TestDPUFallsSilent(t *testing.T) {
	t.Parallel()
	eachPhase(t, dpuSilences, func(s *stage, p phase, sender string) {
		dpu := s.start("dpu", refDPU+"-stop-after "+p.step)
		host := s.start("host", ourHost+"--idle-timeout 300ms")
		s.judge(host, p, sender, "host")
		s.blames(host, p, sender)
		dpu.kill()
		s.recovers(sender, false)
	})
}

// The copy is made to take longer than a process needs to die of its own signal.
const patientDPU = "DMA_COPY_SOFT_LIMITS=task_latency_us=50000 " + ourDPU + "--chunk 65536 --depth 1 "

// TestHostDies kills an unmodified host in every phase.
func TestHostDies(t *testing.T) {
	t.Parallel()
	eachPhase(t, hostDeaths, func(s *stage, p phase, sender string) {
		dpu := s.start("dpu", patientDPU)
		host := s.start("host", refHost+"-die-after "+p.step)
		host.ends(137)
		s.judge(dpu, p, sender, "dpu")
		s.recovers(sender, false)
	})
}

// TestHostFallsSilent stops an unmodified host in every phase, with the connection open.
func TestHostFallsSilent(t *testing.T) {
	t.Parallel()
	eachPhase(t, hostSilences, func(s *stage, p phase, sender string) {
		dpu := s.start("dpu", ourDPU+"--idle-timeout 300ms")
		host := s.start("host", refHost+"-stop-after "+p.step)
		s.judge(dpu, p, sender, "dpu")
		s.blames(dpu, p, sender)
		host.kill()
		s.recovers(sender, false)
	})
}
