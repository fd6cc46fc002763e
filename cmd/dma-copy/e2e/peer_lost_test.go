package e2e

import "testing"

// The phases of a transfer with the reference program, as the steps after which its model dies or stops, and the exit
// codes of dma-copy that follow.
var (
	dpuDeaths = []phase{
		{"direction-sent", exitPeer, exitPeer},
		{"export-received", exitPeer, exitPeer},
		{"copied", exitPeer, exitPeer},
		{"status-sent", exitOK, exitOK}, // the transfer is complete
	}
	dpuSilences = append([]phase{
		{"connected", exitPeer, exitPeer},
		{"direction-received", exitPeer, exitPeer},
	}, dpuDeaths...)

	// dpuEarlyDeaths come before the DPU has answered. They look to the host like a DPU that rejects it, so it tries
	// again and copies with the next DPU.
	dpuEarlyDeaths = []phase{{"connected", exitOK, exitOK}, {"direction-received", exitOK, exitOK}}
)

// A host that dies after the DPU's STATUS(1) looks like one that is done. One that only falls silent leaves open
// whether it saved what it received; if it sent the file, its silence does not matter.
var (
	hostDeaths = []phase{
		{"connected", exitPeer, exitPeer},
		{"direction-sent", exitPeer, exitPeer},
		{"direction-received", exitPeer, exitPeer},
		{"export-sent", exitPeer, exitPeer},
		{"status-received", exitOK, exitOK},
	}
	hostSilences = []phase{
		{"connected", exitPeer, exitPeer},
		{"direction-sent", exitPeer, exitPeer},
		{"direction-received", exitPeer, exitPeer},
		{"export-sent", exitOK, exitPeer},
		{"status-received", exitOK, exitPeer},
	}
)

type phase struct {
	step                string
	hostSends, dpuSends int // exit codes of dma-copy
}

func (p phase) code(sender string) int {
	if sender == "host" {
		return p.hostSends
	}
	return p.dpuSends
}

// forEachPhase runs a test for every phase in both directions.
func forEachPhase(t *testing.T, phases []phase, test func(f *fixture, p phase, sender string)) {
	t.Helper()
	for _, p := range phases {
		for _, sender := range bothSides {
			t.Run(p.step+"_"+sender+"_sends", func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.createFile(sender, 1_000_000)
				test(f, p, sender)
			})
		}
	}
}

// expectEnd expects one side to end with the code of the phase. A receiver that fails has no file.
func (p phase) expectEnd(f *fixture, s side, sender string) {
	f.t.Helper()
	s.expectExit(p.code(sender))
	if p.code(sender) != exitOK && s.name == peerOf(sender) {
		f.expectNoFile(s.name)
	}
}

// expectTimeoutReported expects a side that failed to report the peer's silence; the peer gives up too, but much later.
func (p phase) expectTimeoutReported(s side, sender string) {
	s.t.Helper()
	if p.code(sender) != exitOK {
		s.expectStderr("timeout: no message from the ")
	}
}

// TestDPUDies kills a reference DPU in every phase after its answer.
func TestDPUDies(t *testing.T) {
	t.Parallel()
	forEachPhase(t, dpuDeaths, func(f *fixture, p phase, sender string) {
		dpu := f.start("dpu", refpeerDPU+"-die-after "+p.step)
		host := f.start("host", hostCommand)
		dpu.expectExit(exitKilled)
		p.expectEnd(f, host, sender)
		f.expectRecovery(sender, false)
	})
}

// TestDPUDiesBeforeItsAnswer kills a reference DPU while the host may still connect to another.
func TestDPUDiesBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	forEachPhase(t, dpuEarlyDeaths, func(f *fixture, p phase, sender string) {
		dpu := f.start("dpu", refpeerDPU+"-die-after "+p.step)
		host := f.start("host", hostCommand+"--wait 10m")
		dpu.expectExit(exitKilled)
		next := f.start("dpu", dpuCommand)
		p.expectEnd(f, host, sender)
		next.expectExit(exitOK)
		f.expectSameFiles()
		f.expectClean()
	})
}

// TestDPUFallsSilent stops a reference DPU in every phase, with the connection open.
func TestDPUFallsSilent(t *testing.T) {
	t.Parallel()
	forEachPhase(t, dpuSilences, func(f *fixture, p phase, sender string) {
		dpu := f.start("dpu", refpeerDPU+"-stop-after "+p.step)
		host := f.start("host", hostCommand+idleFlag)
		p.expectEnd(f, host, sender)
		p.expectTimeoutReported(host, sender)
		dpu.kill()
		f.expectRecovery(sender, false)
	})
}

// slowDPU takes longer to copy than a process needs to die of its own signal.
const slowDPU = "DMA_COPY_SOFT_LIMITS=task_latency_us=200000 " + dpuCommand + "--chunk 65536 --depth 1 "

// TestHostDies kills a reference host in every phase.
func TestHostDies(t *testing.T) {
	t.Parallel()
	forEachPhase(t, hostDeaths, func(f *fixture, p phase, sender string) {
		dpu := f.start("dpu", slowDPU)
		host := f.start("host", refpeerHost+"-die-after "+p.step)
		host.expectExit(exitKilled)
		p.expectEnd(f, dpu, sender)
		f.expectRecovery(sender, false)
	})
}

// TestHostFallsSilent stops a reference host in every phase, with the connection open.
func TestHostFallsSilent(t *testing.T) {
	t.Parallel()
	forEachPhase(t, hostSilences, func(f *fixture, p phase, sender string) {
		dpu := f.start("dpu", dpuCommand+idleFlag)
		host := f.start("host", refpeerHost+"-stop-after "+p.step)
		p.expectEnd(f, dpu, sender)
		p.expectTimeoutReported(dpu, sender)
		host.kill()
		f.expectRecovery(sender, false)
	})
}
