package e2e

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	// scenarioSize is more than two intervals of a receiver's journal, which is written every 16 MiB.
	scenarioSize = 40 << 20

	// scenarioLimits make the transfer slow enough that a random time is likely to hit each of its phases.
	scenarioLimits = "DMA_COPY_SOFT_LIMITS=task_latency_us=2000 "
	scenarioFlags  = "--chunk 256KiB --depth 4 -l INFO -o json --wait 10s "

	scenarioCount = 8 // two sides to disrupt, two senders, with and without an old file
)

var (
	logAgreed    = regexp.MustCompile(`"message":"agreed"`)
	resumedField = regexp.MustCompile(`"type":"summary".*"resumed_bytes":(\d+)`)
)

// scenario is a transfer that crash, signal and stall tests repeat. Each time they disrupt one of its sides at a random
// time: they kill it, signal it or stop it.
type scenario struct {
	*fixture
	disrupted, sender string
	overwrites        bool // the receiver has an old file under the final name
	fast              bool // on the fast path
	random            *rand.Rand
	flags             map[string]string // more flags of each side

	handshakeTime, transferTime time.Duration // measured: until both sides have agreed, and from then to the end
}

// forEachScenario runs a test for all scenarios in parallel. Without a seed it chooses one.
func forEachScenario(t *testing.T, seed uint64, test func(s *scenario, i int)) {
	t.Helper()
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	t.Run("scenarios", func(t *testing.T) {
		for i := range scenarioCount {
			s := &scenario{
				disrupted: bothSides[i&1], sender: bothSides[i>>1&1], overwrites: i>>2 == 1,
				fast: bits.OnesCount(uint(i))%2 == 1, flags: map[string]string{},
			}
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				s.fixture = newFixture(t)
				s.random = rand.New(rand.NewPCG(seed, uint64(i)))
				s.createFile(s.sender, scenarioSize)
				s.reset()
				s.expectComplete(0)
				test(s, i)
			})
		}
	})
}

func (s *scenario) String() string {
	name := fmt.Sprintf("%s_disrupted_%s_sends", s.disrupted, s.sender)
	if s.overwrites {
		name += "_over_an_old_file"
	}
	if s.fast {
		name += "_fast"
	}
	return name
}

func (s *scenario) receiver() string    { return peerOf(s.sender) }
func (s *scenario) receiverDir() string { return filepath.Dir(s.path(s.receiver())) }
func (s *scenario) oldCopy() string     { return filepath.Join(s.dir, "old") }

// reset gives the receiver what it has before a transfer: an old file, or nothing.
func (s *scenario) reset() {
	s.t.Helper()
	must(s.t, os.RemoveAll(s.receiverDir()))
	must(s.t, os.Mkdir(s.receiverDir(), 0o755))
	if s.overwrites {
		must(s.t, writeRandomFile(s.oldCopy(), "old content", 3_000_000))
		must(s.t, writeRandomFile(s.path(s.receiver()), "old content", 3_000_000))
	}
}

// startTransfer starts both sides.
func (s *scenario) startTransfer() sidePair {
	s.t.Helper()
	lines := map[string]string{"host": hostCommand + scenarioFlags, "dpu": scenarioLimits + dpuCommand + scenarioFlags}
	if s.overwrites {
		lines[s.receiver()] += "--overwrite "
	}
	if s.fast {
		lines["host"] += fastFlag
	}
	sides := sidePair{}
	for _, name := range bothSides {
		sides[name] = s.start(name, lines[name]+s.flags[name])
	}
	return sides
}

// expectComplete runs the transfer to its end and expects it to resume from so many bytes of an earlier one. If it
// starts from the beginning it measures how long a transfer takes.
func (s *scenario) expectComplete(resumed int64) {
	s.t.Helper()
	started := time.Now()
	sides := s.startTransfer()
	sides[s.disrupted].waitForLog(logAgreed)
	agreed := time.Now()
	for _, name := range bothSides {
		sides[name].expectExit(exitOK)
		sides[name].expectResumed(resumed)
	}
	if resumed == 0 {
		s.handshakeTime, s.transferTime = agreed.Sub(started), time.Since(agreed)
	}
	s.expectSameFiles()
	s.expectClean()
}

// expectResumed expects the summary of a run with -o json to name so many resumed bytes.
func (s side) expectResumed(bytes int64) {
	s.t.Helper()
	match := resumedField.FindStringSubmatch(s.stdout.String())
	if match == nil || match[1] != fmt.Sprint(bytes) {
		s.t.Errorf("%s: want %d bytes resumed; stdout:\n%s", s.name, bytes, s.stdout.String())
	}
}

// waitRandomTime waits for a random time within the transfer. Of eight times one lies in each of four short phases that
// a time chosen from the whole transfer would seldom hit.
func (s *scenario) waitRandomTime(sides sidePair) {
	s.t.Helper()
	disrupted, fraction := sides[s.disrupted], s.random.Float64()
	switch s.random.IntN(8) {
	case 0: // before both sides have agreed
		sleepFraction(s.handshakeTime, fraction)
	case 1: // near the end
		disrupted.waitForLog(logAgreed)
		sleepFraction(s.transferTime, 0.8+0.2*fraction)
	case 2: // just after the rename
		s.waitForRename(disrupted)
		sleepFraction(time.Millisecond, fraction)
	case 3: // just after the agreement, while the window is opened
		disrupted.waitForLog(logAgreed)
		sleepFraction(2*time.Millisecond, fraction)
	default:
		disrupted.waitForLog(logAgreed)
		sleepFraction(s.transferTime, fraction)
	}
}

func sleepFraction(d time.Duration, fraction float64) {
	time.Sleep(time.Duration(fraction * float64(d)))
}

// waitForRename waits until the partial file has existed and is gone, or the side has ended.
func (s *scenario) waitForRename(disrupted side) {
	partial := filepath.Join(s.receiverDir(), partialName)
	for existed := false; ; time.Sleep(20 * time.Microsecond) {
		_, err := os.Lstat(partial)
		if existed && err != nil || disrupted.hasEnded() {
			return
		}
		existed = existed || err == nil
	}
}

// committed reports whether the final name holds the new content. It expects the old content or nothing otherwise.
func (s *scenario) committed() bool {
	s.t.Helper()
	path := s.path(s.receiver())
	if _, err := os.Lstat(path); os.IsNotExist(err) && !s.overwrites {
		return false
	}
	if s.overwrites && compareFiles(s.oldCopy(), path) == nil {
		return false
	}
	if err := compareFiles(s.path(s.sender), path); err != nil {
		s.t.Errorf("the final name holds neither the old content nor the new: %v", err)
	}
	return true
}

// expectLeftFiles expects nothing in the two directories but the file and what a transfer can resume from. A receiver
// that was able to clean up leaves these only if they are of use.
func (s *scenario) expectLeftFiles(cleanedUp bool) {
	s.t.Helper()
	expectOnly(s.t, filepath.Dir(s.path(s.sender)), "file")
	left := expectOnly(s.t, s.receiverDir(), "file", partialName, journalName)
	if cleanedUp && len(left) > 0 && resumableBytes(s.t, s.receiverDir()) == 0 {
		s.t.Errorf("%q are left, but nothing can be resumed from them", left)
	}
}

// expectRepeated runs the same two commands again and returns how many bytes they resumed. They complete the transfer
// with what the first left, or find the target up to date and leave it alone.
func (s *scenario) expectRepeated(committed bool) (resumed int64) {
	s.t.Helper()
	if committed {
		s.expectUpToDate()
		return 0
	}
	resumed = resumableBytes(s.t, s.receiverDir())
	s.expectComplete(resumed)
	return resumed
}

// expectUpToDate expects the two commands to find nothing to do, and to leave the target as it is.
func (s *scenario) expectUpToDate() {
	s.t.Helper()
	before, err := os.Stat(s.path(s.receiver()))
	must(s.t, err)
	sides := s.startTransfer()
	sides.expectExit(exitOK)
	for _, name := range bothSides {
		if printed := sides[name].stdout.String(); !strings.Contains(printed, `"action":"unchanged"`) {
			s.t.Errorf("%s: the file is not reported as unchanged; stdout:\n%s", name, printed)
		}
	}
	after, err := os.Stat(s.path(s.receiver()))
	must(s.t, err)
	if !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		s.t.Error("the target was up to date, and has been replaced")
	}
	s.expectSameFiles()
	s.expectClean()
}
