package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
)

func TestPlaceThatIsLogged(t *testing.T) {
	cpus := wishFor("auto", "2-3").Cores
	nowhere := placement.Decision{Node: -1}
	cases := []struct {
		name  string
		place placement.Decision
		err   error
		wish  placement.Wish
		parts []string // of each line; none: nothing is logged
	}{
		{"nothing to say", nowhere, nil, placement.Wish{}, nil},
		{"near the device", placement.Decision{CPUs: cpus, Node: 1}, nil, placement.Wish{}, []string{`"info","numa_node":1,"cpus":"2-3","gomaxprocs":`}},
		{"far from the device", placement.Decision{Node: 1}, nil, placement.Wish{}, []string{`"info","numa_node":1,"message":"this process may not use any CPU`}},
		{"unknown", nowhere, errors.New("unreadable"), placement.Wish{}, []string{`"warn","error":"unreadable"`}},
		{"the CPUs that were named", placement.Decision{CPUs: cpus, Node: -1}, nil, wishFor("auto", "2-3"), []string{`"info","cpus":"2-3"`}},
		{"some of them", placement.Decision{CPUs: cpus, Node: -1}, nil, wishFor("auto", "2-4"), []string{`"warn","cores":"2-4"`, `"info","cpus":"2-3"`}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			logPlace(zerolog.New(&out), tc.place, tc.err, tc.wish)
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

// What nobody asked for is no reason to fail, and what somebody did is.
func TestMachineThatCannotBeAsked(t *testing.T) {
	unknown := func() (placement.Machine, error) { return placement.Machine{}, syscall.EPERM }
	for _, wish := range []placement.Wish{wishFor("auto", ""), wishFor("auto", "0"), wishFor("0", "")} {
		var out strings.Builder
		err := takePlace(unknown, true, "0000:b1:00.1", wish, zerolog.New(&out))
		if auto := wish.IsAuto(); errors.Is(err, syscall.EPERM) == auto || strings.Contains(out.String(), `"warn"`) != auto {
			t.Errorf("%+v: error %v, logged %q", wish.Node, err, out.String())
		}
	}
}

// Only hardware has a place on the machine: the software device's addresses may be those of something else there.
func TestSoftwareDeviceIsNowhere(t *testing.T) {
	m := twoNodes("0-3")
	for hardware, want := range map[bool]string{true: "2-3", false: ""} {
		place, err := choosePlace(m.place, placement.Wish{}, placedBy(hardware, "0000:b1:00.1"))
		if err != nil || place.CPUs.String() != want {
			t.Errorf("hardware %t: CPUs %q, error %v, want %q", hardware, place.CPUs, err, want)
		}
	}
}
