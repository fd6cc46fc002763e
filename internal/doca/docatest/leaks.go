package docatest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Main runs the tests of a package and fails it if goroutines or objects of package doca outlive them. It does not
// return.
func Main(m *testing.M) { goleak.VerifyTestMain(handleChecker{m}) }

type handleChecker struct{ *testing.M }

// Run replaces a success by a failure if something is still open.
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

// CheckHandles fails the test if at its end, after its cleanups, anything but the given objects is open. Call it before
// the first of them.
func CheckHandles(t *testing.T, known ...any) {
	t.Helper()
	if handles := doca.OpenHandles(); len(handles) > len(known) {
		t.Fatalf("open before the test: %s", strings.Join(handles, "\n"))
	}
	t.Cleanup(func() {
		if handles := doca.OpenHandles(); len(handles) > len(known) {
			t.Errorf("left open: %s", strings.Join(handles, "\n"))
		}
	})
}

// inventory is what a process holds of the kernel's.
type inventory struct {
	descriptors map[string]int // by what they lead to, without its number
	memfds      int            // mappings of memory that was made to be shared
}

func takeInventory(t *testing.T) inventory {
	t.Helper()
	startNetpoller(t)
	return inventory{descriptors: countDescriptors(t), memfds: countMemfds(t)}
}

// startNetpoller has the Go runtime open the descriptors that it keeps for ever.
func startNetpoller(t *testing.T) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, _ = read.Close(), write.Close()
}

func countDescriptors(t *testing.T) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil {
			kind, _, _ := strings.Cut(target, ":[")
			counts[kind]++
		}
	}
	return counts
}

func countMemfds(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "/memfd:")
}

func (before inventory) mustBeUnchanged(t *testing.T) {
	t.Helper()
	after := takeInventory(t)
	for kind, count := range after.descriptors {
		if was := before.descriptors[kind]; count > was {
			t.Errorf("%d descriptors of %s were open before, %d are now", was, kind, count)
		}
	}
	if after.memfds != before.memfds {
		t.Errorf("%d mappings of shared memory before, %d now", before.memfds, after.memfds)
	}
}
