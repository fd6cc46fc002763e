//go:build cgo

package doca_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Only memory that the other side may access is backed by a file, through which it is accessed.
func TestOnlyWhatMayBeExportedIsShared(t *testing.T) {
	driver := openSoft(t, "")
	closeAtEnd(t, driver)
	device, err := driver.OpenDevice("b1:00.1")
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, device)
	for access, shared := range map[doca.Access]bool{
		doca.LocalRead: false, doca.LocalWrite: false, doca.RemoteRead: true, doca.RemoteWrite: true,
		doca.LocalWrite | doca.RemoteWrite: true,
	} {
		region, err := device.Alloc(1<<20, access)
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, region)
		if got := strings.Contains(mappingAt(t, region.Address()), "memfd:"); got != shared {
			t.Errorf("memory with access %v is shared: %t", access, got)
		}
	}
}

// mappingAt returns the line of this process's memory map for the mapping that contains the address.
func mappingAt(t *testing.T, address uint64) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err == nil && start <= address && address < end {
			return line
		}
	}
	t.Fatalf("nothing is mapped at %x", address)
	return ""
}
