package e2e

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var (
	killCount = flag.Int("kill.count", 24, "how often TestKilledAtAnyMoment kills")
	killSeed  = flag.Uint64("kill.seed", 0, "what its moments follow from; 0: another each time")
)

// TestKilledAtAnyMoment kills one side of a copy with SIGKILL, again and again, at moments that are spread over the whole copy. Each
// time the final name holds the old or the new content, the other side ends by itself and says what is true, nothing is left but
// what a later copy can go on with, and the same two commands then complete it.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	total := &toll{}
	eachOrdeal(t, *killSeed, func(o *ordeal, i int) {
		for left := (*killCount + i) / ordealKinds; left > 0 && !o.t.Failed(); {
			if (killing{o, total}).strike() {
				left--
			}
		}
	})
	t.Log(total)
}

// killing is a copy of which one side dies.
type killing struct {
	*ordeal
	toll *toll
}

// strike tells whether it was in time.
func (k killing) strike() bool {
	k.t.Helper()
	k.clear()
	sides := k.both()
	victim, survivor := sides[k.victim], sides[otherThan(k.victim)]
	k.someMoment(victim)
	victim.kill()
	<-survivor.ended
	committed := k.committed()
	killed := k.judge(victim, survivor, committed)
	k.mustBeTidy(k.victim == k.sender)
	if k.again(committed) > 0 {
		k.toll.count(&k.toll.resumed)
	}
	return killed
}

// judge compares what the sides say with what there is. It tells whether the victim was killed: the copy may have been over.
func (k killing) judge(victim, survivor side, committed bool) bool {
	k.t.Helper()
	if exitCodeOf(victim.command.ProcessState) == exitOK {
		k.toll.count(&k.toll.late)
		k.overTooSoon()
		survivor.ends(exitOK)
		k.mustBeCommitted(committed)
		return false
	}
	victim.ends(exitSignal + int(syscall.SIGKILL))
	k.toll.count(&k.toll.kills)
	if exitCodeOf(survivor.command.ProcessState) == exitOK {
		k.toll.count(&k.toll.after)
		survivor.ends(exitOK)
		k.mustBeCommitted(committed)
		return true
	}
	survivor.ends(exitPeer)
	k.judgeLoss(survivor, committed)
	return true
}

func (k killing) mustBeCommitted(committed bool) {
	k.t.Helper()
	if !committed {
		k.t.Error("somebody says that the copy has succeeded, and it has not")
	}
}

// judgeLoss is for a survivor that has not heard of a success. A receiver knows what it has done; a sender that does not know says so.
func (k killing) judgeLoss(survivor side, committed bool) {
	k.t.Helper()
	switch said := survivor.stderr.String(); {
	case !committed:
		k.toll.count(&k.toll.before)
	case k.victim == k.sender:
		k.t.Errorf("the receiver gave the file its name and ended with a failure:\n%s", said)
	default:
		k.toll.count(&k.toll.unknown)
		if !strings.Contains(said, "transfer outcome unknown") {
			k.t.Errorf("the file has its name, and the sender does not say that this is unknown:\n%s", said)
		}
	}
}

// toll counts what became of the copies.
type toll struct {
	mu                     sync.Mutex
	kills, late            int // late: the copy was over
	before, after, unknown int // of the kills: the file did not get its name; it did, and the other side knows it, or does not
	resumed                int // of the copies that followed
}

func (o *toll) count(what *int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*what++
}

func (o *toll) String() string {
	return fmt.Sprintf("%d kills: %d before the file had its name, %d after it, %d after it and unknown to the other side; "+
		"%d copies resumed; %d times the copy was over already", o.kills, o.before, o.after, o.unknown, o.resumed, o.late)
}
