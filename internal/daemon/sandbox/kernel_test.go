package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// fakeKernel plays a kernel with some version of Landlock. It restricts nothing.
type fakeKernel struct {
	abi    int
	fails  string // the call that fails: prctl or landlock
	prctls []int

	noAmbient bool
	confined  bool
	tcp       bool // was left as it is
}

var errFake = errors.New("the fake kernel fails")

func (f *fakeKernel) calls() kernel {
	return kernel{
		landlockABI: func() int { return f.abi },
		landlock: func(_ []landlock.Rule, tcp bool) error {
			f.confined, f.tcp = true, tcp
			return f.failure("landlock")
		},
		prctl: func(option int, _ ...uintptr) error {
			f.prctls = append(f.prctls, option)
			return f.failure("prctl")
		},
		ambient: func() bool { return !f.noAmbient },
	}
}

func (f *fakeKernel) failure(call string) error {
	if call == f.fails {
		return errFake
	}
	return nil
}

// What a kernel lacks is told, and the rest is done.
func TestOlderKernels(t *testing.T) {
	for _, test := range []struct {
		abi      int
		confined bool
		missing  string
	}{
		{0, false, "has no Landlock"},
		{1, false, "renames between directories"},
		{2, true, "does not restrict truncation of files, TCP, ioctl on devices, signals and abstract sockets"},
		{3, true, "does not restrict TCP, ioctl"},
		{5, true, "(version 5 of 6) does not restrict signals and abstract sockets"},
		{6, true, ""},
		{99, true, ""},
	} {
		fake := &fakeKernel{abi: test.abi}
		r, err := fake.calls().restrict(Policy{Shares: []Share{{Path: t.TempDir()}}})
		if err != nil {
			t.Fatal(err)
		}
		if fake.confined != test.confined || r.Confined() != test.confined {
			t.Errorf("version %d: confined: %v, says %v; want %v", test.abi, fake.confined, r.Confined(), test.confined)
		}
		if !r.Apart() {
			t.Errorf("version %d: the threads have the same credentials", test.abi)
		}
		if got := r.Missing(); !strings.Contains(got, test.missing) || test.missing == "" && got != "" {
			t.Errorf("version %d: missing is %q, want %q", test.abi, got, test.missing)
		}
		if !slices.Equal(fake.prctls, []int{unix.PR_SET_NO_NEW_PRIVS, unix.PR_CAP_AMBIENT}) {
			t.Errorf("version %d: prctl was called with %v", test.abi, fake.prctls)
		}
	}
}

// A daemon with UCX keeps TCP, and nothing is told to be missing that it would not have.
func TestTCPOfUCX(t *testing.T) {
	for _, policy := range []Policy{{}, Policy{}.WithUCX()} {
		fake := &fakeKernel{abi: abiTruncate}
		r, err := fake.calls().restrict(policy)
		if err != nil {
			t.Fatal(err)
		}
		if fake.tcp != policy.UCX || strings.Contains(r.Missing(), "TCP") == policy.UCX {
			t.Errorf("UCX %t: TCP is left %t, missing is %q", policy.UCX, fake.tcp, r.Missing())
		}
	}
}

// Nothing runs with less restriction than intended because a call failed.
func TestRestrictFailsClosed(t *testing.T) {
	for _, call := range []string{"prctl", "landlock"} {
		fake := &fakeKernel{abi: abiNewest, fails: call}
		if _, err := fake.calls().restrict(Policy{}); !errors.Is(err, errFake) {
			t.Errorf("%s fails: got %v", call, err)
		}
	}
	fake := &fakeKernel{abi: abiNewest}
	_, err := fake.calls().restrict(Policy{Shares: []Share{{Path: t.TempDir() + "/absent"}}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a share that does not exist: got %v", err)
	}
}

// Where nothing confines the process, a reload may add any share.
func TestAdmitWithoutLandlock(t *testing.T) {
	r, err := (&fakeKernel{}).calls().restrict(Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Admit("new", Share{Path: t.TempDir(), Write: true}); err != nil {
		t.Error(err)
	}
}
