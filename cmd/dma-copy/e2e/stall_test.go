package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	stopCount = flag.Int("stop.count", 8, "how often TestStallAtRandomTime stops a side")
	stopSeed  = flag.Uint64("stop.seed", 0, "seed of its random times; 0: a new one each time")
)

// TestStallAtRandomTime stops one side of a transfer with SIGSTOP at random times. The other side ends by itself after
// its idle timeout, the stopped side ends when it continues, and both report the truth about the file.
func TestStallAtRandomTime(t *testing.T) {
	t.Parallel()
	var longest atomic.Int64
	forEachScenario(t, *stopSeed, func(s *scenario, i int) {
		for n := range (*stopCount + i) / scenarioCount {
			storeMax(&longest, int64(s.stall()))
			if s.t.Failed() {
				s.t.Fatalf("at stop %d of this scenario", n)
			}
		}
	})
	t.Logf("%d stops; the other side took at most %s to end",
		*stopCount, time.Duration(longest.Load()))
}

func storeMax(most *atomic.Int64, value int64) {
	for old := most.Load(); value > old && !most.CompareAndSwap(old, value); old = most.Load() {
	}
}

// stall stops the side once. It returns how long the other side took to end, 0 if the two had not agreed.
func (s *scenario) stall() (took time.Duration) {
	s.t.Helper()
	s.reset()
	s.flags[peerOf(s.disrupted)] = idleFlag
	sides := s.startTransfer()
	delete(s.flags, peerOf(s.disrupted)) // the next transfers are to succeed
	stopped, peer := sides[s.disrupted], sides[peerOf(s.disrupted)]
	s.waitRandomTime(sides)
	started := time.Now()
	_ = stopped.signal(syscall.SIGSTOP) // it may have ended
	<-peer.done
	if logAgreed.MatchString(peer.stderr.String()) {
		took = time.Since(started)
	}
	_ = stopped.signal(syscall.SIGCONT)
	<-stopped.done
	committed := s.committed()
	if code, before := s.stoppedBeforeDirection(stopped); before {
		stopped.expectExit(code)
		peer.expectExit(exitPeer)
	} else {
		for _, name := range bothSides {
			s.checkStalled(name, sides[name], committed)
		}
	}
	s.expectLeftFiles(true)
	s.expectRepeated(committed)
	return took
}

// stoppedBeforeDirection reports whether the stop hit a host between the connection and its DIRECTION, and the code
// with which it then ends. The DPU, which waited for that in vain, can answer with STATUS(0) only, which a host has to
// take for a refusal; or, on the fast path, for that of a peer that has none.
func (s *scenario) stoppedBeforeDirection(stopped side) (code int, before bool) {
	text := stopped.stderr.String()
	switch {
	case s.disrupted != "host":
		return 0, false
	case strings.Contains(text, "the DPU refused"), strings.Contains(text, "but the DPU has no file to send"):
		return exitSource, true
	case strings.Contains(text, "the DPU uses the reference protocol"):
		return exitProtocol, true
	}
	return 0, false
}

func (s *scenario) checkStalled(name string, one side, committed bool) {
	s.t.Helper()
	one.expectExitEither(exitPeer, exitOK)
	switch code := one.exitCode(); {
	case code == exitOK && !committed:
		s.t.Errorf("the %s reports success, but the target is not committed", name)
	case code == exitPeer && committed && name == s.receiver():
		s.t.Errorf("the receiver committed the target and failed:\n%s", one.stderr.String())
	}
}

// forEachSideAndSender runs a test for either side to disrupt, in both directions.
func forEachSideAndSender(t *testing.T, test func(f *fixture, disrupted, sender string)) {
	t.Helper()
	for _, disrupted := range bothSides {
		for _, sender := range bothSides {
			t.Run(fmt.Sprintf("%s_%s_sends", disrupted, sender), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.createFile(sender, slowSize)
				test(f, disrupted, sender)
			})
		}
	}
}

// slowFlags make a transfer of slowSize bytes take two seconds, in chunks that are small beside it.
const slowFlags = "-l INFO --chunk 64KiB --depth 2 --bwlimit 2M "

// slowerFlags make it take eight seconds: a transfer that the test ends, however busy the machine is.
var slowerFlags = map[string]string{"dpu": "--bwlimit 512K "}

// bandwidth matches the limit of the bandwidth among flags.
var bandwidth = regexp.MustCompile(`--bwlimit \S+ `)

// paced returns slow and others joined. A --bwlimit in others replaces the one in slow.
func paced(slow, others string) string {
	if bandwidth.MatchString(others) {
		slow = bandwidth.ReplaceAllString(slow, "")
	}
	return slow + others
}

// startSlowTransfer starts both sides of a transfer that takes two seconds, and waits until it has begun.
func (f *fixture) startSlowTransfer(flags map[string]string) sidePair {
	f.t.Helper()
	sides := sidePair{
		"host": f.start("host", hostCommand+flags["host"]),
		"dpu":  f.start("dpu", dpuCommand+paced(slowFlags, flags["dpu"])),
	}
	sides["dpu"].waitForLog(logCopying)
	return sides
}

// TestStallShorterThanIdleTimeout stops either side for less than the other's idle timeout and for longer than its own.
// It does not count the time in which it was stopped itself, and the transfer completes.
func TestStallShorterThanIdleTimeout(t *testing.T) {
	t.Parallel()
	forEachStopped(t, func(f *fixture, stopped, sender string) {
		f.createFile(sender, slowSize)
		f.expectStallSurvived(f.startSlowTransfer(flagsOfStall(stopped)), stopped)
		f.expectSameFiles()
		f.expectClean()
	})
}

// TestReferenceStallShorterThanIdleTimeout is the same in the reference protocol, where a side knows only by a clock
// how long the other has sent nothing.
func TestReferenceStallShorterThanIdleTimeout(t *testing.T) {
	t.Parallel()
	forEachStopped(t, func(f *fixture, stopped, sender string) {
		f.createFile(sender, slowSize)
		flags := flagsOfStall(stopped)
		sides := sidePair{
			"host": f.start("host", hostCommand+"-l INFO "+flags["host"]),
			"dpu": f.start("dpu", "DMA_COPY_SOFT_LIMITS=task_latency_us=40000 "+dpuCommand+
				"-l INFO --chunk 256KiB --depth 1 "+referenceFlag+flags["dpu"]),
		}
		sides["dpu"].waitForLog(logCopying)
		sides["host"].waitForLog(logAgreed)
		f.expectStallSurvived(sides, stopped)
		f.expectSameFiles()
		f.expectClean()
	})
}

// forEachStopped runs a test for either side to be stopped for long, in one of the two directions.
func forEachStopped(t *testing.T, test func(f *fixture, stopped, sender string)) {
	t.Helper()
	for _, stopped := range bothSides {
		t.Run(stopped, func(t *testing.T) {
			t.Parallel()
			sender := bothSides[rand.IntN(2)]
			t.Logf("the %s sends", sender)
			test(newFixture(t), stopped, sender)
		})
	}
}

// flagsOfStall are the idle timeouts for a side that is stopped beyondIdle.
func flagsOfStall(stopped string) map[string]string {
	return map[string]string{stopped: patientFlag, peerOf(stopped): unendingFlag}
}

// expectStallSurvived stops a side for longer than its own idle timeout. Both sides succeed.
func (f *fixture) expectStallSurvived(sides sidePair, stopped string) {
	f.t.Helper()
	sides[stopped].stop()
	time.Sleep(beyondIdle)
	sides[stopped].goOn()
	sides.expectExit(exitOK)
}

// stop stops the process and returns when none of its threads runs any more, which may be later than the signal. A
// process that has ended stays as it is.
func (s side) stop() {
	s.t.Helper()
	if err := s.signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	stopped := regexp.MustCompile(`(?m)^State:\s+T`)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	for text := []byte(nil); !stopped.Match(text) && !s.hasEnded(); {
		time.Sleep(time.Millisecond)
		text, _ = os.ReadFile(status) // it may have ended
	}
}

// goOn continues a process after stop. On a busy machine it may have ended before.
func (s side) goOn() {
	s.t.Helper()
	if err := s.signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
}

// TestRequestStandsStill stops a daemon that a ping waits for: the ping says so after a SIGUSR1, and in its log before
// it gives up.
func TestRequestStandsStill(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	d := f.serve("")
	ping := f.command("ping : --count 1000000 -l DEBUG --idle-timeout 10s")
	ping.waitForLog(regexp.MustCompile(`"message":"connection made"`))
	d.side.stop()
	waits := regexp.MustCompile(`(?m)^the command waits for the daemon to answer ping; asked \d+\.\ds ago, `)
	ping.askUntil(waits)
	ping.expectExit(exitPeer)
	d.goOn()
	ping.waitForLog(regexp.MustCompile(`"stalled: the command waits for the daemon to answer ping; asked \d`))
	d.expectEndAfterTerm()
}

// askUntil asks a process what it waits for until its answer matches the pattern.
func (s side) askUntil(pattern *regexp.Regexp) {
	s.t.Helper()
	must(s.t, s.process.askUntil(&s.stderr, pattern))
}
