package ucx

import (
	"errors"
	"testing"
)

// A machine with too many network devices gets an error, and not an abort in UCX.
func TestTooManyDevices(t *testing.T) {
	for _, c := range []struct {
		interfaces, ports int
		fits              bool
	}{{1, 0, true}, {120, 0, true}, {121, 0, false}, {20, 16, true}, {20, 17, false}, {1000, 0, false}} {
		err := checkResources(c.interfaces, c.ports)
		if fits := err == nil; fits != c.fits || !fits && !errors.Is(err, ErrTooManyDevices) {
			t.Errorf("%d interfaces and %d ports: %v", c.interfaces, c.ports, err)
		}
	}
}

// The number of devices does not matter if the transports need none, or some are chosen.
func TestLocalTransports(t *testing.T) {
	for name, c := range map[string]struct {
		transports []string
		local      bool
	}{
		"all": {nil, false}, "tcp": {[]string{"tcp"}, false}, "machine": {[]string{"posix", "sysv", "cma"}, true},
		"self": {[]string{"self"}, true}, "some": {[]string{"self", "rc"}, false},
	} {
		if got := (Settings{Transports: c.transports}).local(); got != c.local {
			t.Errorf("%s: %t", name, got)
		}
	}
}
