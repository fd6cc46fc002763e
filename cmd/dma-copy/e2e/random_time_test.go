package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

const (
	// ordealSize is more than two steps of a receiver's journal, which is written every 16 MiB.
	ordealSize = 40 << 20

	// A copy of it takes so long that every part of it is likely to be hit.
	ordealLimits = "DMA_COPY_SOFT_LIMITS=task_latency_us=2000 "
	ordealShape  = "--chunk 256KiB --depth 4 -l INFO -o json --wait 3s "

	// rareMoments are the kinds of moments of which each is chosen in one of so many cases; the others are any of the copy.
	rareMoments = 8
)

var (
	agreed     = regexp.MustCompile(`"message":"agreed"`)
	wasResumed = regexp.MustCompile(`"type":"summary".*"resumed_bytes":(\d+)`)
)

// ordeal is a copy that is made again and again, and to one side of which something is done at random moments: who that is, who
// sends, and whether there is an old file under the final name.
type ordeal struct {
	*stage
	victim, sender string
	replaces       bool
	random         *rand.Rand
	flags          map[string]string // more of them, by side

	meeting, span time.Duration // of a copy: until both have agreed, and from there to the end
}

// eachOrdeal walks all kinds of them at once. The seed is another each time, unless it is given.
func eachOrdeal(t *testing.T, seed uint64, test func(o *ordeal, i int)) {
	t.Helper()
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("the seed is %d", seed)
	t.Run("kinds", func(t *testing.T) {
		for i := range ordealKinds {
			o := &ordeal{victim: sideNamed(i), sender: sideNamed(i >> 1), replaces: i>>2 == 1, flags: map[string]string{}}
			t.Run(o.String(), func(t *testing.T) {
				t.Parallel()
				o.stage = newStage(t)
				o.random = rand.New(rand.NewPCG(seed, uint64(i)))
				o.put(o.sender, ordealSize)
				o.clear()
				o.complete(0)
				test(o, i)
			})
		}
	})
}

const ordealKinds = 8

func sideNamed(bit int) string { return []string{"host", "dpu"}[bit&1] }

func (o *ordeal) String() string {
	name := fmt.Sprintf("%s_hit_%s_sends", o.victim, o.sender)
	if o.replaces {
		name += "_over_an_old_file"
	}
	return name
}

func (o *ordeal) receiver() string { return otherThan(o.sender) }

// old is where the file is kept that a receiver is to replace.
func (o *ordeal) old() string { return filepath.Join(o.folder, "old") }

// clear gives the receiver what it has before a copy: an old file, or nothing.
func (o *ordeal) clear() {
	o.t.Helper()
	folder := filepath.Dir(o.path(o.receiver()))
	must(o.t, os.RemoveAll(folder))
	must(o.t, os.Mkdir(folder, 0o755))
	if !o.replaces {
		return
	}
	for _, path := range []string{o.old(), o.path(o.receiver())} {
		must(o.t, writeNoise(path, "what was there before", 3_000_000))
	}
}

// both starts the two sides of the copy.
func (o *ordeal) both() map[string]side {
	o.t.Helper()
	lines := map[string]string{"host": ourHost + ordealShape, "dpu": ordealLimits + ourDPU + ordealShape}
	if o.replaces {
		lines[o.receiver()] += "--overwrite "
	}
	sides := map[string]side{}
	for _, name := range []string{"host", "dpu"} {
		sides[name] = o.start(name, lines[name]+o.flags[name])
	}
	return sides
}

// complete makes the copy, which takes so much from an earlier one, and learns from it how long a copy is.
func (o *ordeal) complete(wantResumed int64) {
	o.t.Helper()
	started := time.Now()
	sides := o.both()
	must(o.t, sides[o.victim].says(agreed))
	met := time.Now()
	for _, name := range []string{"host", "dpu"} {
		sides[name].ends(0)
		match := wasResumed.FindStringSubmatch(sides[name].stdout.String())
		if match == nil || match[1] != fmt.Sprint(wantResumed) {
			o.t.Errorf("%s: want %d bytes resumed; it said\n%s", name, wantResumed, sides[name].stdout.String())
		}
	}
	if wantResumed == 0 {
		o.meeting, o.span = met.Sub(started), time.Since(met)
	}
	o.same()
	o.clean()
}

// someMoment lets a random part of a copy pass.
func (o *ordeal) someMoment(victim side) {
	o.t.Helper()
	fraction := o.random.Float64()
	switch o.random.IntN(rareMoments) {
	case 0: // before the two sides have agreed
		time.Sleep(time.Duration(fraction * float64(o.meeting)))
		return
	case 3: // when they have just agreed, and open the window
		fraction *= float64(2*time.Millisecond) / float64(o.span)
	case 1: // about the end
		fraction = 0.8 + 0.2*fraction
	case 2: // when the file has just got its name
		o.untilNamed(victim)
		time.Sleep(time.Duration(fraction * float64(time.Millisecond)))
		return
	}
	must(o.t, victim.says(agreed))
	time.Sleep(time.Duration(fraction * float64(o.span)))
}

// untilNamed waits until the partial file has been there and is gone, or the victim has ended.
func (o *ordeal) untilNamed(victim side) {
	part := filepath.Join(filepath.Dir(o.path(o.receiver())), partOfFile)
	for there := false; ; time.Sleep(20 * time.Microsecond) {
		_, err := os.Lstat(part)
		if there && err != nil || victim.isOver() {
			return
		}
		there = there || err == nil
	}
}

func (s side) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// overTooSoon corrects what is known of the copy's length.
func (o *ordeal) overTooSoon() { o.span = o.span * 9 / 10 }

// committed compares what is under the final name with what may be.
func (o *ordeal) committed() bool {
	o.t.Helper()
	path := o.path(o.receiver())
	if _, err := os.Lstat(path); os.IsNotExist(err) && !o.replaces {
		return false
	}
	if o.replaces && compareFiles(o.old(), path) == nil {
		return false
	}
	if err := compareFiles(o.path(o.sender), path); err != nil {
		o.t.Errorf("the final name holds neither the old content nor the new: %v", err)
	}
	return true
}

// mustBeTidy expects nothing in the two folders but the file and what a copy can go on with. A receiver that could tidy up leaves
// that only if it is of use.
func (o *ordeal) mustBeTidy(couldTidyUp bool) {
	o.t.Helper()
	mustHoldOnly(o.t, filepath.Dir(o.path(o.sender)), "file")
	folder := filepath.Dir(o.path(o.receiver()))
	left := mustHoldOnly(o.t, folder, "file", partOfFile, journalOfFile)
	if couldTidyUp && len(left) > 0 && keptIn(o.t, folder) == 0 {
		o.t.Errorf("%q is left, and of no use", left)
	}
}

// again runs the same two commands, and returns how much they have taken over. They complete the copy with what is left of the first;
// where that was completed and nothing may be replaced, they are refused.
func (o *ordeal) again(committed bool) (kept int64) {
	o.t.Helper()
	if committed && !o.replaces {
		for _, one := range o.both() {
			one.ends(exitSource)
		}
		o.same()
		o.clean()
		return 0
	}
	kept = keptIn(o.t, filepath.Dir(o.path(o.receiver())))
	o.complete(kept)
	return kept
}
