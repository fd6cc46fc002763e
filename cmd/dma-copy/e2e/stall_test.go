package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	stopCount = flag.Int("stop.count", 16, "how often TestStoppedAtAnyMoment stops a side")
	stopSeed  = flag.Uint64("stop.seed", 0, "what its moments follow from; 0: another each time")
)

// TestStoppedAtAnyMoment stops one side of a copy with SIGSTOP at any moment. The other ends by itself, after its idle timeout; the
// stopped one ends when it goes on, since the other has given up; and both say what is true of the file.
func TestStoppedAtAnyMoment(t *testing.T) {
	t.Parallel()
	var longest atomic.Int64
	eachOrdeal(t, *stopSeed, func(o *ordeal, i int) {
		o.flags[otherThan(o.victim)] = "--idle-timeout 500ms"
		for n := range (*stopCount + i) / ordealKinds {
			took := o.freeze()
			for was := longest.Load(); int64(took) > was && !longest.CompareAndSwap(was, int64(took)); was = longest.Load() {
			}
			if o.t.Failed() {
				o.t.Fatalf("at stop %d of this kind", n)
			}
		}
	})
	t.Logf("%d stops; with an idle timeout of 500ms the other side took at most %s", *stopCount, time.Duration(longest.Load()))
}

// freeze returns how long it took the other side to end, if they had agreed on a copy.
func (o *ordeal) freeze() (took time.Duration) {
	o.t.Helper()
	o.clear()
	sides := o.both()
	victim, other := sides[o.victim], sides[otherThan(o.victim)]
	o.someMoment(victim)
	stopped := time.Now()
	_ = victim.signal(syscall.SIGSTOP) // it may have ended
	<-other.ended
	if agreed.MatchString(other.stderr.String()) {
		took = time.Since(stopped)
	}
	_ = victim.signal(syscall.SIGCONT)
	<-victim.ended
	committed := o.committed()
	for name, one := range sides {
		one.endsEither(exitPeer, exitOK)
		switch code := exitCodeOf(one.command.ProcessState); {
		case code == exitOK && !committed:
			o.t.Errorf("the %s says that the copy has succeeded, and it has not", name)
		case code == exitPeer && committed && name == o.receiver():
			o.t.Errorf("the receiver gave the file its name and ended with a failure:\n%s", one.stderr.String())
		}
	}
	o.mustBeTidy(true)
	o.again(committed)
	return took
}

// eachSide runs a test for either victim in both directions.
func eachSide(t *testing.T, test func(s *stage, victim, sender string)) {
	for _, victim := range []string{"host", "dpu"} {
		for _, sender := range []string{"host", "dpu"} {
			t.Run(fmt.Sprintf("%s_%s_sends", victim, sender), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, slowSize)
				test(s, victim, sender)
			})
		}
	}
}

// copyingWith starts both sides of a copy that takes some seconds, and waits until it is in its middle.
func (s *stage) copyingWith(flags map[string]string) map[string]side {
	s.t.Helper()
	sides := map[string]side{
		"host": s.start("host", ourHost+flags["host"]),
		"dpu":  s.start("dpu", ourDPU+"-l INFO --chunk 64KiB --depth 2 --bwlimit 2M "+flags["dpu"]),
	}
	must(s.t, sides["dpu"].says(copying))
	return sides
}

// TestStoppedForAWhile stops a side for less than the other's patience, and for more than its own: it does not blame the other for the
// time in which it was away, and the copy goes on to its end.
func TestStoppedForAWhile(t *testing.T) {
	t.Parallel()
	eachSide(t, func(s *stage, victim, sender string) {
		sides := s.copyingWith(map[string]string{victim: "--idle-timeout 2s"})
		sides[victim].stop()
		time.Sleep(3 * time.Second)
		must(s.t, sides[victim].signal(syscall.SIGCONT))
		for _, one := range sides {
			one.ends(0)
		}
		s.same()
		s.clean()
	})
}

// TestStoppedForAWhileInTheReferenceProtocol is the same where a side knows only by a clock how long the other has said
// nothing.
func TestStoppedForAWhileInTheReferenceProtocol(t *testing.T) {
	t.Parallel()
	eachSide(t, func(s *stage, victim, sender string) {
		patience := map[string]string{victim: "--idle-timeout 2s "}
		sides := map[string]side{
			"host": s.start("host", ourHost+"-l INFO "+patience["host"]),
			"dpu": s.start("dpu", "DMA_COPY_SOFT_LIMITS=task_latency_us=10000 "+ourDPU+
				"-l INFO --chunk 32KiB --depth 1 "+referenceOnly+patience["dpu"]),
		}
		must(s.t, sides["dpu"].says(copying))
		must(s.t, sides["host"].says(agreed))
		sides[victim].stop()
		time.Sleep(2500 * time.Millisecond) // longer than the victim's patience, which is longer than the copy
		must(s.t, sides[victim].signal(syscall.SIGCONT))
		for _, one := range sides {
			one.ends(0)
		}
		s.same()
		s.clean()
	})
}

// TestInterruptedCopyIsGoneOnWith interrupts a side when some of the file has come. Both end with the signal's code, and the next copy takes
// over what has come.
func TestInterruptedCopyIsGoneOnWith(t *testing.T) {
	defaultHangup(t)
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			eachSide(t, func(s *stage, victim, sender string) {
				sides := s.copyingWith(nil)
				folder := filepath.Dir(s.path(otherThan(sender)))
				s.arrived(folder, slowSize/4)
				must(s.t, sides[victim].signal(signal))
				for _, one := range sides {
					one.ends(code)
				}
				s.absent(otherThan(sender))
				kept := keptIn(s.t, folder)
				if kept < slowSize/8 {
					s.t.Errorf("%d bytes are kept", kept)
				}
				s.goesOn(kept)
			})
		})
	}
}

// TestSecondSignalEndsTheDraining interrupts a side that would still tell the other, which is stopped and does not hear: the second signal
// kills it at once. The other hears of the first, if that was not too soon after it.
func TestSecondSignalEndsTheDraining(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			eachSide(t, func(s *stage, victim, sender string) {
				sides := s.copyingWith(nil)
				other := sides[otherThan(victim)]
				other.stop()
				killedBy := sides[victim].signalUntilEnded(signal)
				must(s.t, other.signal(syscall.SIGCONT))
				if killedBy != signal {
					s.t.Errorf("it was killed by %v, not by %v", killedBy, signal)
				}
				other.endsEither(code, exitPeer)
				s.absent(otherThan(sender))
			})
		})
	}
}

// stop returns when no thread of the process runs any more, which may be later than the signal.
func (s side) stop() {
	s.t.Helper()
	must(s.t, s.signal(syscall.SIGSTOP))
	stopped := regexp.MustCompile(`(?m)^State:\s+T`)
	status := fmt.Sprintf("/proc/%d/status", s.command.Process.Pid)
	for text := []byte(nil); !stopped.Match(text) && !s.isOver(); {
		time.Sleep(time.Millisecond)
		text, _ = os.ReadFile(status) // it may have ended
	}
}

func (s side) endsEither(code, or int) {
	s.t.Helper()
	<-s.ended
	if exitCodeOf(s.command.ProcessState) == or {
		code = or
	}
	// Memory that a stopped DPU is copying from or to is kept, with a warning.
	kept := code != exitOK && strings.Contains(s.stderr.String(), "some resources could not be released")
	if err := s.endsWith(code, kept); err != nil {
		s.t.Error(err)
	}
}

// signalUntilEnded returns what the process was killed by.
func (s side) signalUntilEnded(signal syscall.Signal) syscall.Signal {
	s.t.Helper()
	for {
		_ = s.signal(signal) // it may have ended
		select {
		case <-s.ended:
			return s.command.ProcessState.Sys().(syscall.WaitStatus).Signal()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// arrived waits until a receiver has written so much of a file without zeros. There is nothing to wait on in another process's file,
// hence the polling.
func (s *stage) arrived(folder string, size int64) {
	s.t.Helper()
	deadline := time.Now().Add(hangGuard)
	for !wroteAt(filepath.Join(folder, partOfFile), size) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d bytes never came", size)
		}
		time.Sleep(time.Millisecond)
	}
}

func wroteAt(path string, offset int64) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var piece [16]byte
	_, err = file.ReadAt(piece[:], offset)
	return err == nil && piece != [16]byte{}
}

// goesOn expects the next copy to take over so much.
func (s *stage) goesOn(kept int64) {
	s.t.Helper()
	host := s.start("host", ourHost+"-o json")
	dpu := s.start("dpu", ourDPU+"-o json --chunk 64KiB")
	for _, one := range []side{host, dpu} {
		one.ends(0)
		match := wasResumed.FindStringSubmatch(one.stdout.String())
		if match == nil || match[1] != fmt.Sprint(kept) {
			s.t.Errorf("%s: want %d bytes resumed; it said\n%s", one.name, kept, one.stdout.String())
		}
	}
	s.same()
	s.clean()
}
