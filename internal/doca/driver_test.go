//go:build cgo

package doca_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// open opens a driver with an empty library directory, so without DOCA.
func open(t *testing.T, options doca.Options) (*doca.Driver, error) {
	t.Helper()
	docatest.CheckHandles(t)
	options.SoftDir = t.TempDir()
	if options.LibraryDir == "" {
		options.LibraryDir = t.TempDir()
	}
	driver, err := doca.Open(options)
	if err == nil {
		t.Cleanup(func() { _ = driver.Close() })
	}
	return driver, err
}

func TestAutoTakesSoftAndSaysWhy(t *testing.T) {
	for _, choice := range []doca.Choice{"", doca.ChooseAuto} {
		t.Run(string(choice), func(t *testing.T) {
			directory := t.TempDir()
			driver, err := open(t, doca.Options{Choice: choice, LibraryDir: directory})
			if err != nil {
				t.Fatal(err)
			}
			if driver.Name() != doca.ChooseSoft || driver.Hardware() {
				t.Errorf("%s was opened, hardware %t", driver.Name(), driver.Hardware())
			}
			for _, word := range []string{"DOCA's libraries were not found", directory} {
				if !strings.Contains(driver.Fallback(), word) {
					t.Errorf("%q does not mention %s", driver.Fallback(), word)
				}
			}
			if want := "the software device is used because " + driver.Fallback(); driver.Reason() != want {
				t.Errorf("the reason is %q", driver.Reason())
			}
		})
	}
}

func TestSoftIsTakenWhenAskedFor(t *testing.T) {
	driver, err := open(t, doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		t.Fatal(err)
	}
	if driver.Name() != doca.ChooseSoft || driver.Reason() == "" || driver.Version() == "" || driver.Fallback() != "" {
		t.Errorf("%s %q because %q, fallback %q", driver.Name(), driver.Version(), driver.Reason(), driver.Fallback())
	}
}

func TestRequireHardwareRefusesSoft(t *testing.T) {
	for _, choice := range []doca.Choice{doca.ChooseAuto, doca.ChooseSoft} {
		_, err := open(t, doca.Options{Choice: choice, RequireHardware: true})
		if !errors.Is(err, doca.ErrHardwareRequired) {
			t.Errorf("%s: got %v, want ErrHardwareRequired", choice, err)
		}
	}
}

func TestMissingDOCANamesWhatWasLookedFor(t *testing.T) {
	directory := t.TempDir()
	_, err := open(t, doca.Options{Choice: doca.ChooseDOCA, LibraryDir: directory})
	var load *doca.LoadError
	if !errors.As(err, &load) {
		t.Fatalf("got %v, want a LoadError", err)
	}
	for _, word := range []string{"libdoca_common", ".so.2", directory} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %s", err, word)
		}
	}
}

func TestBadSoftSettingsAreOneSentence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]doca.Options{
		"limits":    {Choice: doca.ChooseSoft, SoftDir: t.TempDir(), SoftLimits: "max_buf_size=little"},
		"functions": {Choice: doca.ChooseSoft, SoftDir: t.TempDir(), SoftFunctions: "vf,pf"},
		"directory": {Choice: doca.ChooseSoft, SoftDir: file},
	} {
		driver, err := doca.Open(options)
		if err == nil {
			_ = driver.Close()
			t.Errorf("bad %s were taken", name)
		} else if strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%q is more than a sentence", err)
		}
	}
}

// The limits are those of the process, and cannot change while a device is open.
func TestOpenDevicesKeepTheirLimits(t *testing.T) {
	driver, err := open(t, doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		t.Fatal(err)
	}
	device, err := driver.OpenDevice("b1:00.0")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir()}); err == nil {
		_ = other.Close()
		t.Error("the limits of an open device were changed")
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedDriver(t *testing.T) {
	driver, err := open(t, doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := driver.Devices(); !errors.Is(err, doca.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := driver.OpenDevice("b1:00.0"); !errors.Is(err, doca.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestOpenHandlesReportTheirCreator(t *testing.T) {
	driver, err := open(t, doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		t.Fatal(err)
	}
	device, err := driver.OpenDevice("b1:00.0")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Join(doca.OpenHandles(), "\n")
	for _, word := range []string{"*doca.Driver", "*doca.Device", t.Name(), "driver_test.go"} {
		if !strings.Contains(listed, word) {
			t.Errorf("%s does not mention %s", listed, word)
		}
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}
