package e2e

import (
	"flag"
	"os"
	ossignal "os/signal"
	"syscall"
	"testing"
)

var (
	signalCount = flag.Int("signal.count", 16, "how often TestInterruptedAtAnyMoment interrupts")
	signalSeed  = flag.Uint64("signal.seed", 0, "what its moments follow from; 0: another each time")
)

// TestInterruptedAtAnyMoment sends SIGINT, SIGTERM or SIGHUP to one side of a copy at any moment. Both sides end with
// the signal's code, unless the copy is too far to be taken back, or the two have not met; and the same two commands
// complete it.
func TestInterruptedAtAnyMoment(t *testing.T) {
	defaultHangup(t)
	eachOrdeal(t, *signalSeed, func(o *ordeal, i int) {
		for n := range (*signalCount + i) / ordealKinds {
			o.interrupt([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[(n+i)%3])
			if o.t.Failed() {
				o.t.Fatalf("at signal %d of this kind", n)
			}
		}
	})
}

// defaultHangup lets the programs that the test starts see SIGHUP even if the tests run under nohup.
func defaultHangup(t *testing.T) {
	t.Helper()
	ossignal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t.Cleanup(func() { ossignal.Reset(syscall.SIGHUP) })
}

func (o *ordeal) interrupt(signal syscall.Signal) {
	o.t.Helper()
	o.clear()
	sides := o.both()
	o.someMoment(sides[o.victim])
	_ = sides[o.victim].signal(signal) // it may have ended
	for _, one := range sides {
		<-one.ended
	}
	committed := o.committed()
	for name, one := range sides {
		o.judgeInterrupted(name, one, exitSignal+int(signal), committed)
	}
	o.mustBeTidy(true)
	o.again(committed)
}

// judgeInterrupted knows that a receiver is sure of what it has done, and that a sender may have asked for it and not have heard.
func (o *ordeal) judgeInterrupted(name string, one side, code int, committed bool) {
	o.t.Helper()
	status := one.command.ProcessState.Sys().(syscall.WaitStatus)
	switch got := exitCodeOf(one.command.ProcessState); {
	case committed && name == o.receiver():
		one.ends(exitOK)
	case committed:
		one.endsEither(exitOK, exitPeer)
	case status.Signaled() && name == o.victim && got == code:
		// So early that it had not begun to listen for signals.
	case name == o.victim:
		one.ends(code)
	default:
		one.endsEither(code, exitPeer)
	}
}
