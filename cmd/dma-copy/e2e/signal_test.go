package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	signalCount = flag.Int("signal.count", 8, "how often TestSignalAtRandomTime signals a side")
	signalSeed  = flag.Uint64("signal.seed", 0, "seed of its random times; 0: a new one each time")
)

// verySlowDPU stays in the middle of a transfer of slowSize bytes for minutes, and logs that it has begun.
const (
	verySlowDPU = "DMA_COPY_SOFT_LIMITS=task_latency_us=100000 " + dpuCommand + "-l INFO --chunk 4096 --depth 1 "
	slowSize    = 4 << 20
)

var logCopying = regexp.MustCompile(`"message":"copying"`)

// TestSignalAtRandomTime sends SIGINT, SIGTERM or SIGHUP to one side of a transfer at random times. Both sides end with
// the signal's code, unless the transfer is already committed or the two have not met, and the same two commands
// complete it.
func TestSignalAtRandomTime(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	forEachScenario(t, *signalSeed, func(s *scenario, i int) {
		for n := range (*signalCount + i) / scenarioCount {
			s.interrupt(signals[(n+i)%len(signals)])
			if s.t.Failed() {
				s.t.Fatalf("at signal %d of this scenario", n)
			}
		}
	})
}

func (s *scenario) interrupt(signal syscall.Signal) {
	s.t.Helper()
	s.reset()
	sides := s.startTransfer()
	s.waitRandomTime(sides)
	_ = sides[s.disrupted].signal(signal) // it may have ended
	for _, name := range bothSides {
		<-sides[name].done
	}
	committed := s.committed()
	for _, name := range bothSides {
		s.checkInterrupted(name, sides[name], exitSignal+int(signal), committed)
	}
	s.expectLeftFiles(true)
	s.expectRepeated(committed)
}

// checkInterrupted checks the exit code of one side. A receiver knows whether it has committed; a sender may have
// asked for the commit and not have heard of it.
func (s *scenario) checkInterrupted(name string, one side, code int, committed bool) {
	s.t.Helper()
	status := one.command.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case committed && name == s.receiver():
		one.expectExit(exitOK)
	case committed:
		one.expectExitEither(exitOK, exitPeer)
	case status.Signaled() && name == s.disrupted && one.exitCode() == code:
		// The signal came before the program had installed its handler.
	case name == s.disrupted:
		one.expectExit(code)
	default:
		one.expectExitEither(code, exitPeer)
	}
}

// ending is a signal to one side, and the exit codes that follow from it.
type ending struct {
	signal    syscall.Signal
	code      int // of the side that gets the signal
	native    int // of its peer in the native protocol
	reference int // of its peer in the reference protocol, which cannot carry the cause
}

// TestSignalDuringTransfer ends either side in the middle of a transfer. A signal that can be handled is the exit code
// of both sides, and a crash is noticed. The receiver has no file under its name, and the next transfer works.
func TestSignalDuringTransfer(t *testing.T) {
	t.Parallel()
	for _, e := range []ending{
		{syscall.SIGINT, exitInterrupt, exitInterrupt, exitFailure},
		{syscall.SIGTERM, exitTerminated, exitTerminated, exitFailure},
		{syscall.SIGHUP, exitHangup, exitHangup, exitFailure},
		{syscall.SIGKILL, exitKilled, exitPeer, exitPeer},
	} {
		for _, signalled := range bothSides {
			for _, sender := range byChance(bothSides) {
				e.test(t, signalled, sender)
			}
		}
	}
}

func (e ending) test(t *testing.T, signalled, sender string) {
	name := fmt.Sprintf("%s_%s_%s_sends", unix.SignalName(e.signal), signalled, sender)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		e.interrupt(f, signalled, sender, verySlowDPU, e.native)
		f.expectRecovery(sender, false)
	})
	t.Run(name+"_reference", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		e.interrupt(f, signalled, sender, verySlowDPU+referenceFlag, e.reference)
		if e.signal != syscall.SIGKILL {
			f.expectClean()
		}
		f.expectRecovery(sender, partialHasBytes(t, filepath.Join(f.dir, peerOf(sender))))
	})
}

func (e ending) interrupt(f *fixture, signalled, sender, dpuLine string, peerCode int) {
	f.t.Helper()
	f.createFile(sender, slowSize)
	sides := sidePair{"host": f.start("host", hostCommand), "dpu": f.start("dpu", dpuLine)}
	sides["dpu"].waitForLog(logCopying)
	must(f.t, sides[signalled].signal(e.signal))
	sides[signalled].expectExit(e.code)
	sides[peerOf(signalled)].expectExit(peerCode)
	f.expectNoFile(peerOf(sender))
}

// partialHasBytes reports whether a receiver's partial file exists and is not empty. On a file system with unnamed
// files, one that cannot be resumed disappears with the process.
func partialHasBytes(t *testing.T, dir string) bool {
	t.Helper()
	partial, err := os.Stat(filepath.Join(dir, partialName))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	must(t, err)
	return partial.Size() > 0
}

// TestHangupUnderNohup sends SIGHUP to either side in the middle of a transfer. Where it was ignored at the start, as
// under nohup, the transfer completes.
func TestHangupUnderNohup(t *testing.T) {
	t.Parallel()
	for _, signalled := range bothSides {
		t.Run(signalled, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile("host", slowSize)
			sides := sidePair{
				"host": f.start("host", "nohup "+hostCommand),
				"dpu":  f.start("dpu", "nohup "+dpuCommand+"-l INFO --chunk 64KiB --bwlimit 1M"),
			}
			sides["dpu"].waitForLog(logCopying)
			must(t, sides[signalled].signal(syscall.SIGHUP))
			sides.expectExit(exitOK)
			f.expectSameFiles()
			f.expectClean()
		})
	}
}

// TestResumeAfterSignal signals a side when some of the file has arrived. Both sides end with the signal's code, and
// the next transfer resumes from what has arrived.
func TestResumeAfterSignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		code := exitSignal + int(signal)
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			forEachSideAndSender(t, func(f *fixture, signalled, sender string) {
				sides := f.startSlowTransfer(slowerFlags)
				dir := filepath.Dir(f.path(peerOf(sender)))
				f.waitForBytes(dir, slowSize/16)
				must(f.t, sides[signalled].signal(signal))
				sides.expectExit(code)
				f.expectNoFile(peerOf(sender))
				resumable := resumableBytes(f.t, dir)
				if resumable < slowSize/32 {
					f.t.Errorf("only %d bytes can be resumed", resumable)
				}
				f.expectResume(resumable)
			})
		})
	}
}

// waitForBytes waits until a receiver has written so much of a file without zeros. A file of another process cannot be
// waited for, hence the polling.
func (f *fixture) waitForBytes(dir string, size int64) {
	f.t.Helper()
	deadline := time.Now().Add(processTimeout)
	for !hasDataAt(filepath.Join(dir, partialName), size) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%d bytes never arrived", size)
		}
		time.Sleep(time.Millisecond)
	}
}

func hasDataAt(path string, offset int64) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var data [16]byte
	_, err = file.ReadAt(data[:], offset)
	return err == nil && data != [16]byte{}
}

// expectResume expects the next transfer to complete the file and to resume from so many bytes.
func (f *fixture) expectResume(bytes int64) {
	f.t.Helper()
	sides := sidePair{
		"host": f.start("host", hostCommand+"-o json"),
		"dpu":  f.start("dpu", dpuCommand+"-o json --chunk 64KiB"),
	}
	for _, name := range bothSides {
		sides[name].expectExit(exitOK)
		sides[name].expectResumed(bytes)
	}
	f.expectSameFiles()
	f.expectClean()
}

// signalAttempts is how often a side is signalled until the second signal comes before it has ended by itself. Once is
// enough unless the machine is so busy that the test does not run for half a second.
const signalAttempts = 5

// TestSecondSignalWhilePeerIsStopped interrupts a side whose peer is stopped, so that it waits to notify the peer: the
// second signal kills it at once. The peer learns of the first signal, if that was not too short before.
func TestSecondSignalWhilePeerIsStopped(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(fmt.Sprint(exitSignal+int(signal)), func(t *testing.T) {
			t.Parallel()
			forEachSideAndSender(t, func(f *fixture, signalled, sender string) {
				for range signalAttempts {
					if f.isKilledBySecondSignal(signal, signalled, sender) {
						return
					}
				}
				f.t.Errorf("it was not killed by %v", signal)
			})
		})
	}
}

// isKilledBySecondSignal signals a side whose peer is stopped until it ends, and reports whether a signal has killed
// it.
func (f *fixture) isKilledBySecondSignal(signal syscall.Signal, signalled, sender string) bool {
	f.t.Helper()
	code := exitSignal + int(signal)
	sides := f.startSlowTransfer(slowerFlags)
	ended, peer := sides[signalled], sides[peerOf(signalled)]
	peer.stop()
	killedBy := ended.signalUntilEnd(signal)
	must(f.t, peer.signal(syscall.SIGCONT))
	if got := ended.exitCode(); got != code {
		f.t.Errorf("exit code %d, want %d; stderr:\n%s", got, code, ended.stderr.String())
	}
	peer.expectExitEither(code, exitPeer)
	f.expectNoFile(peerOf(sender))
	return killedBy == signal
}

// signalUntilEnd repeats a signal until the process ends, and returns the signal that killed it.
func (s side) signalUntilEnd(signal syscall.Signal) syscall.Signal {
	s.t.Helper()
	for {
		_ = s.signal(signal) // it may have ended
		select {
		case <-s.done:
			return s.command.ProcessState.Sys().(syscall.WaitStatus).Signal()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
