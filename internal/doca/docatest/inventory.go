package docatest

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Inventory counts the kernel objects of a process.
type Inventory struct {
	descriptors map[string]int // by what they lead to, without its number
	mappings    map[string]int // of files, shared memory included; anonymous ones are the runtime's to have
}

// TakeInventory counts those that the process holds now.
func TakeInventory(t *testing.T) Inventory {
	t.Helper()
	startNetpoller(t)
	return Inventory{descriptors: countDescriptors(t), mappings: countMappings(t)}
}

// startNetpoller makes the Go runtime open the descriptors that it keeps.
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

func countMappings(t *testing.T) map[string]int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(maps)) {
		if _, path, is := strings.Cut(strings.TrimSpace(line), " /"); is {
			counts[path]++
		}
	}
	return counts
}

// MustBeUnchanged fails the test if the process now holds more or fewer.
func (before Inventory) MustBeUnchanged(t *testing.T) {
	t.Helper()
	after := TakeInventory(t)
	mustBeTheSame(t, "descriptors", before.descriptors, after.descriptors)
	mustBeTheSame(t, "mappings", before.mappings, after.mappings)
}

func mustBeTheSame(t *testing.T, what string, before, after map[string]int) {
	t.Helper()
	for kind, count := range after {
		if count > before[kind] {
			t.Errorf("%d %s of %s before, %d now", before[kind], what, kind, count)
		}
	}
	for kind, count := range before {
		if after[kind] < count {
			t.Errorf("%d %s of %s before, %d now", count, what, kind, after[kind])
		}
	}
}
