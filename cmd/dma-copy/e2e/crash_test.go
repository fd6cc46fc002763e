package e2e

import (
	"flag"
	"fmt"
	"sync"
	"testing"
)

var (
	killCount = flag.Int("kill.count", 12, "how often TestCrashAtRandomTime kills a side")
	killSeed  = flag.Uint64("kill.seed", 0, "seed of its random times; 0: a new one each time")
)

// TestCrashAtRandomTime kills one side of a transfer with SIGKILL at random times. Each time the final name holds the
// old or the new content, the other side ends by itself and reports the truth, nothing is left but what a later
// transfer can resume from, and the same two commands then complete the transfer.
func TestCrashAtRandomTime(t *testing.T) {
	t.Parallel()
	counts := &crashCounts{}
	forEachScenario(t, *killSeed, func(s *scenario, i int) {
		test := crashTest{s, counts}
		for left := (*killCount + i) / scenarioCount; left > 0 && !s.t.Failed(); {
			if test.crash() {
				left--
			}
		}
	})
	t.Log(counts)
}

// crashTest is a scenario of which one side is killed.
type crashTest struct {
	*scenario
	counts *crashCounts
}

// crash kills the side once. It reports whether the side was still running.
func (c crashTest) crash() bool {
	c.t.Helper()
	c.reset()
	sides := c.startTransfer()
	killed, peer := sides[c.disrupted], sides[peerOf(c.disrupted)]
	c.waitRandomTime(sides)
	killed.kill()
	<-peer.done
	committed := c.committed()
	inTime := killed.exitCode() != exitOK
	if inTime {
		c.checkCrashed(killed, peer, committed)
	} else {
		c.checkTooLate(peer, committed)
	}
	c.expectLeftFiles(c.disrupted == c.sender)
	if c.expectRepeated(committed) > 0 {
		c.counts.add(&c.counts.resumed)
	}
	return inTime
}

// checkTooLate is called when the transfer was over before the kill. The next times are chosen from a shorter transfer.
func (c crashTest) checkTooLate(peer side, committed bool) {
	c.t.Helper()
	c.counts.add(&c.counts.late)
	c.transferTime = c.transferTime * 9 / 10
	peer.expectExit(exitOK)
	c.expectCommitted(committed)
}

func (c crashTest) checkCrashed(killed, peer side, committed bool) {
	c.t.Helper()
	killed.expectExit(exitKilled)
	c.counts.add(&c.counts.kills)
	switch {
	case peer.exitCode() == exitOK:
		c.counts.add(&c.counts.after)
		peer.expectExit(exitOK)
		c.expectCommitted(committed)
	case !committed:
		c.counts.add(&c.counts.before)
		peer.expectExit(exitPeer)
	case c.disrupted == c.sender: // a receiver knows what it has done
		c.t.Errorf("the receiver committed the target and failed:\n%s", peer.stderr.String())
	default: // a sender may not have heard of the commit
		c.counts.add(&c.counts.unknown)
		peer.expectExit(exitPeer)
		peer.expectStderr("transfer outcome unknown")
	}
}

func (c crashTest) expectCommitted(committed bool) {
	c.t.Helper()
	if !committed {
		c.t.Error("a side reports success, but the target is not committed")
	}
}

// crashCounts counts the outcomes of all scenarios.
type crashCounts struct {
	mu                     sync.Mutex
	kills, late            int // late: the transfer was over before the kill
	before, after, unknown int // kills before the commit; after it, known to the peer; after it, unknown to the peer
	resumed                int // of the transfers that followed
}

func (c *crashCounts) add(count *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*count++
}

func (c *crashCounts) String() string {
	return fmt.Sprintf("%d kills: %d before the commit, %d after it, %d after it and unknown to the peer; "+
		"%d transfers resumed; %d times the transfer was over before the kill",
		c.kills, c.before, c.after, c.unknown, c.resumed, c.late)
}
