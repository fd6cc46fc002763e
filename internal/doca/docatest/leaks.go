package docatest

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Main runs the tests of a package and fails if goroutines or objects of package doca outlive them. It does not return.
func Main(m *testing.M) {
	// Their heaps are small, so that garbage collection would take a quarter of their CPU time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	goleak.VerifyTestMain(handleChecker{m})
}

type handleChecker struct{ *testing.M }

// Run returns a failure instead of a success if something is still open.
func (c handleChecker) Run() int {
	code := c.M.Run()
	handles := doca.OpenHandles()
	for _, handle := range handles {
		fmt.Fprintf(os.Stderr, "leaked: %s\n", handle)
	}
	if code == 0 && len(handles) > 0 {
		return 1
	}
	return code
}

// MustBeClosed fails the test if anything but the given objects is open.
func MustBeClosed(t *testing.T, known ...any) {
	t.Helper()
	if handles := doca.OpenHandles(); len(handles) > len(known) {
		t.Errorf("left open: %s", strings.Join(handles, "\n"))
	}
}

// CheckHandles fails the test if at its end, after its cleanups, anything but the given objects is open. It must be
// called before the first of them is opened.
func CheckHandles(t *testing.T, known ...any) {
	t.Helper()
	if handles := doca.OpenHandles(); len(handles) > len(known) {
		t.Fatalf("open before the test: %s", strings.Join(handles, "\n"))
	}
	t.Cleanup(func() { MustBeClosed(t, known...) })
}
