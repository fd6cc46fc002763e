package docatest

import (
	"io"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Sides are a host function and the function of the DPU that represents it, in one process.
type Sides struct {
	Driver    *doca.Driver
	Host, DPU *doca.Device
}

// OpenSides opens the software device with the given limits ("name=value,...", or none) in its own runtime directory.
// At the end of the test everything is closed, and anything else that is still open fails it.
func OpenSides(t *testing.T, limits string) Sides {
	t.Helper()
	return OpenSidesIn(t, t.TempDir(), limits)
}

// OpenSidesIn is OpenSides in a runtime directory that other processes know.
func OpenSidesIn(t *testing.T, dir, limits string) Sides {
	t.Helper()
	CheckHandles(t)
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: dir, SoftLimits: limits})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, driver)
	b := &bench{T: t, driver: driver}
	return Sides{Driver: driver, Host: b.host(), DPU: b.dpu()}
}

// OpenRepresentor opens the representor of the host function for the rest of the test.
func (s Sides) OpenRepresentor(t *testing.T) *doca.Representor {
	t.Helper()
	return (&bench{T: t, driver: s.Driver}).representor(s.DPU, s.Host)
}

// closeAtEnd closes twice, which is harmless.
func closeAtEnd(t *testing.T, c io.Closer) {
	t.Cleanup(func() {
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("closing %T: %v", c, err)
			}
		}
	})
}
