package sandbox

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Credentials are left alone where there is nothing to drop and no Landlock, and only there.
func TestNothingIsDroppedTwice(t *testing.T) {
	fake := &fakeKernel{noAmbient: true}
	r, err := fake.calls().restrict(Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Apart() {
		t.Error("each thread has credentials of its own")
	}
	if !slices.Equal(fake.prctls, []int{unix.PR_SET_NO_NEW_PRIVS}) {
		t.Errorf("prctl was called with %v", fake.prctls)
	}
}

func TestLandlockSetsThreadsApart(t *testing.T) {
	fake := &fakeKernel{noAmbient: true, abi: abiRefer}
	if r, err := fake.calls().restrict(Policy{}); err != nil || !r.Apart() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestHasNoAmbient(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\n": true,
		"Name:\tx\nCapAmb:\t0000000000000400\nNoNewPrivs:\t0\n": false,
		"Name:\tx\nCapAmb:\t\n":                                 false,
		"Name:\tx\nCapAmb:\t0000":                               false,
		"Name:\tx\nCapEff:\t0000000000000000\n":                 false,
		"":                                                      false,
	} {
		if got := hasNoAmbient([]byte(status)); got != want {
			t.Errorf("%q: %t", status, got)
		}
	}
}
