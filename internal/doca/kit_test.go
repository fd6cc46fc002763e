//go:build cgo

package doca_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// buildKit builds the libraries of the development kit that stand in for DOCA's own and returns their directory.
func buildKit(t *testing.T) string {
	t.Helper()
	mustCompileForThisMachine(t)
	dir := t.TempDir()
	build := exec.Command("make", "-C", "../../sdk", "loadable", "SDKDIR="+dir)
	build.Env = append(os.Environ(), "MAKEFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the kit: %v\n%s", err, output)
	}
	return filepath.Join(dir, "lib")
}

// mustCompileForThisMachine skips where the tests run under emulation and the compiler builds for the machine below.
func mustCompileForThisMachine(t *testing.T) {
	t.Helper()
	machine, err := exec.Command("cc", "-dumpmachine").Output()
	if err != nil {
		t.Fatalf("no C compiler, although this test was built with one: %v", err)
	}
	names := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	if !strings.HasPrefix(string(machine), names[runtime.GOARCH]) {
		t.Skipf("cc builds for %s and this test runs on %s", strings.TrimSpace(string(machine)), runtime.GOARCH)
	}
}

// The same device passes the same suite when it is loaded as DOCA's libraries are: the list of functions, the loader and
// the calling conventions, end to end.
func TestKitThroughTheLoader(t *testing.T) {
	libraries := buildKit(t)
	t.Setenv("DMA_COPY_SOFT_DIR", t.TempDir())
	docatest.Run(t, func(t *testing.T) *doca.Driver {
		driver, err := doca.Open(doca.Options{Choice: doca.ChooseDOCA, LibraryDir: libraries})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := driver.Devices(); err != nil { // with which the device finds its runtime directory
			t.Fatal(err)
		}
		if driver.Name() != doca.ChooseDOCA || driver.Hardware() {
			t.Fatalf("the kit was taken for %s, hardware %v", driver.Name(), driver.Hardware())
		}
		return driver
	})
}
