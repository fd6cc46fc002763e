//go:build cgo

package doca_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// buildKit builds the libraries of the development kit, which have the names of DOCA's, and returns their directory.
func buildKit(t *testing.T) string {
	t.Helper()
	if strings.HasSuffix(os.Getenv("CC"), "-gcc") {
		t.Skip("these tests are cross-compiled and emulated, and qemu does not survive the suite's bus errors")
	}
	dir := t.TempDir()
	build := exec.Command("make", fmt.Sprint("-j", runtime.NumCPU()), "-C", "../../softdoca/kit", "loadable",
		"SDKDIR="+dir, "CFLAGS=-O1") // compiles in two thirds of the time
	build.Env = append(os.Environ(), "MAKEFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the kit: %v\n%s", err, output)
	}
	return filepath.Join(dir, "lib")
}

func TestKit(t *testing.T) {
	libraries := buildKit(t)
	t.Run("reports its time model", func(t *testing.T) { kitReportsItsTimeModel(t, libraries) })
	t.Run("through the loader", func(t *testing.T) { kitThroughTheLoader(t, libraries) })
}

// The kit's libraries report their time model and that no bytes are moved, although they have the names of DOCA's.
func kitReportsItsTimeModel(t *testing.T, libraries string) {
	t.Setenv("DMA_COPY_SOFT_DIR", t.TempDir())
	t.Setenv("DMA_COPY_SOFT_LIMITS", "model=400g,move_bytes=0")
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseDOCA, LibraryDir: libraries})
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	if driver.MovesBytes() || !strings.HasPrefix(driver.TimeModel(), "400g: ") {
		t.Errorf("the kit has the time model %q and moves bytes: %t", driver.TimeModel(), driver.MovesBytes())
	}
}

// The software device passes the same suite when it is loaded as DOCA is: the list of functions, the loader and the
// calling conventions, end to end.
func kitThroughTheLoader(t *testing.T, libraries string) {
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
