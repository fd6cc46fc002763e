package placement

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
)

func TestPlacementIsLogged(t *testing.T) {
	cpus := mustWish(t, "auto", "2-3").Cores
	nowhere := Decision{Node: -1}
	cases := []struct {
		name     string
		decision Decision
		err      error
		wish     Wish
		parts    []string // of each line; none: nothing is logged
	}{
		{"nothing to say", nowhere, nil, Wish{}, nil},
		{"near the device", Decision{CPUs: cpus, Node: 1}, nil, Wish{},
			[]string{`"info","numa_node":1,"cpus":"2-3","gomaxprocs":`}},
		{"far from the device", Decision{Node: 1}, nil, Wish{},
			[]string{`"info","numa_node":1,"message":"this process may not use any CPU`}},
		{"unknown", nowhere, errors.New("unreadable"), Wish{}, []string{`"warn","error":"unreadable"`}},
		{"the CPUs that were named", Decision{CPUs: cpus, Node: -1}, nil, mustWish(t, "auto", "2-3"),
			[]string{`"info","cpus":"2-3"`}},
		{"some of them", Decision{CPUs: cpus, Node: -1}, nil, mustWish(t, "auto", "2-4"),
			[]string{`"warn","cores":"2-4"`, `"info","cpus":"2-3"`}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			logDecision(zerolog.New(&out), tc.decision, tc.err, tc.wish)
			lines := strings.SplitAfter(out.String(), "\n")
			if len(lines) != len(tc.parts)+1 {
				t.Fatalf("logged %q, want %q", out.String(), tc.parts)
			}
			for i, part := range tc.parts {
				if !strings.Contains(lines[i], part) {
					t.Errorf("logged %q, want %q", lines[i], part)
				}
			}
		})
	}
}

// An automatic wish that cannot be fulfilled is a warning, an explicit one an error.
func TestUnreadableMachine(t *testing.T) {
	unknown := func() (Machine, error) { return Machine{}, syscall.EPERM }
	for _, wish := range []Wish{mustWish(t, "auto", ""), mustWish(t, "auto", "0"), mustWish(t, "0", "")} {
		var out strings.Builder
		err := Apply(unknown, "0000:b1:00.1", wish, zerolog.New(&out))
		if auto := wish.IsAuto(); errors.Is(err, syscall.EPERM) == auto ||
			strings.Contains(out.String(), `"warn"`) != auto {
			t.Errorf("%+v: error %v, logged %q", wish.Node, err, out.String())
		}
	}
}

// Only hardware has a NUMA node: the addresses of the software device may be those of other devices.
func TestSoftwareDeviceHasNoNode(t *testing.T) {
	machine := func() (Machine, error) { return Machine{Sys: twoNodes, Usable: mustList(t, "0-7")}, nil }
	for hardware, want := range map[bool]string{true: "4-7", false: ""} {
		decision, err := Choose(machine, Wish{}, NearAddress(hardware, device))
		if err != nil || decision.CPUs.String() != want {
			t.Errorf("hardware %t: CPUs %q, error %v, want %q", hardware, decision.CPUs, err, want)
		}
	}
}
