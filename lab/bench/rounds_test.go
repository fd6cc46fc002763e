package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fakeCandidate is a candidate that writes down what becomes of it.
type fakeCandidate struct {
	name            string
	log             *[]string
	failsAt         string // "prepare", "run" or "check"
	failsIn, rounds int    // the round in which it fails, from 1 on, and those it was in
	then            func()
}

var errFake = errors.New("failed on request")

func (a *fakeCandidate) step(what string) error {
	*a.log = append(*a.log, what+" "+a.name)
	if a.failsAt == what && a.failsIn == a.rounds {
		return errFake
	}
	return nil
}

func (a *fakeCandidate) Prepare(context.Context) error {
	a.rounds++
	return a.step("prepare")
}

func (a *fakeCandidate) Run(context.Context) (Run, error) {
	if a.then != nil {
		a.then()
	}
	return Run{Seconds: float64(a.rounds)}, a.step("run")
}

func (a *fakeCandidate) Check(_ context.Context, thoroughly bool) error {
	if thoroughly {
		*a.log = append(*a.log, "thoroughly")
	}
	return a.step("check")
}

func newCandidates(names string) (all []Candidate, log *[]string) {
	log = new([]string)
	for name := range strings.SplitSeq(names, "") {
		all = append(all, &fakeCandidate{name: name, log: log})
	}
	return all, log
}

func runsIn(log []string) (names string) {
	for _, entry := range log {
		if name, is := strings.CutPrefix(entry, "run "); is {
			names += name
		}
	}
	return names
}

func TestCandidatesRunInterleaved(t *testing.T) {
	all, log := newCandidates("abc")
	outcomes, err := Rounds{Warmup: 1, Counted: 3}.Measure(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := runsIn(*log), "abc"+"bca"+"cab"+"cba"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	for i, o := range outcomes {
		if seconds := o.Spread(SecondsOf); seconds == nil || !slices.Equal(seconds.Runs, []float64{2, 3, 4}) {
			t.Errorf("candidate %d: %+v: the warm-up must not count", i, o)
		}
		if o.Spread(func(r Run) float64 { return r.Copy }) != nil {
			t.Errorf("candidate %d reports what it has not measured", i)
		}
	}
	if got := (*log)[:3]; !slices.Equal(got, []string{"prepare a", "run a", "check a"}) {
		t.Errorf("begins with %q", got)
	}
}

// No candidate always runs after the same one.
func TestEachCandidateFollowsEachOther(t *testing.T) {
	for count := 1; count <= 9; count++ {
		rounds, times := count, 1
		if count%2 == 1 {
			rounds, times = 2*count, 2
		}
		first, after := map[int]int{}, map[[2]int]int{}
		for round := range rounds {
			order := roundOrder(count, round)
			first[order[0]]++
			for i := range order[1:] {
				after[[2]int{order[i], order[i+1]}]++
			}
			if sorted := slices.Sorted(slices.Values(order)); sorted[0] != 0 || len(slices.Compact(sorted)) != count {
				t.Fatalf("round %d of %d candidates is %v", round, count, order)
			}
		}
		if len(first) != count || len(after) != count*(count-1) {
			t.Errorf("%d candidates: %d begin, %d pairs", count, len(first), len(after))
		}
		for pair, n := range after {
			if n != times {
				t.Errorf("%d candidates: %v follow each other %d times in %d rounds", count, pair, n, rounds)
			}
		}
	}
}

// Comparing the content takes long, so it is done once, in the last round.
func TestOnlyTheLastRoundIsCheckedThoroughly(t *testing.T) {
	all, log := newCandidates("ab")
	if _, err := (Rounds{Warmup: 1, Counted: 2}).Measure(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	first := slices.Index(*log, "thoroughly")
	if got := runsIn((*log)[:first]); got != "ab"+"ba"+"a" {
		t.Errorf("thorough after the runs %s", got)
	}
}

func TestFailedCandidateDoesNotRunAgain(t *testing.T) {
	for at, runs := range map[string]string{
		"prepare": "abc" + "ca" + "ca", "run": "abc" + "bca" + "ca", "check": "abc" + "bca" + "ca",
	} {
		all, log := newCandidates("abc")
		all[1].(*fakeCandidate).failsAt, all[1].(*fakeCandidate).failsIn = at, 2
		outcomes, err := Rounds{Counted: 3}.Measure(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		if got := runsIn(*log); got != runs {
			t.Errorf("%s: runs %s, want %s", at, got, runs)
		}
		if !errors.Is(outcomes[1].Err, errFake) || outcomes[1].Spread(SecondsOf) != nil {
			t.Errorf("%s: outcome %+v", at, outcomes[1])
		}
		for _, i := range []int{0, 2} {
			if outcomes[i].Err != nil || len(outcomes[i].Runs) != 3 {
				t.Errorf("%s: outcome %+v of a candidate that did not fail", at, outcomes[i])
			}
		}
	}
}

func TestInterruptionEndsAllRounds(t *testing.T) {
	all, log := newCandidates("ab")
	ctx, cancel := context.WithCancelCause(t.Context())
	all[1].(*fakeCandidate).then = func() { cancel(errFake) }
	if _, err := (Rounds{Counted: 9}).Measure(ctx, all); !errors.Is(err, errFake) {
		t.Errorf("error %v", err)
	}
	if got := runsIn(*log); got != "ab" {
		t.Errorf("runs %s", got)
	}
}
