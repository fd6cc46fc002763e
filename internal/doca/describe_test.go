//go:build cgo

package doca

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func openSoftDevice(t *testing.T, name string) *Device {
	t.Helper()
	driver, err := Open(Options{Choice: ChooseSoft, SoftDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	device, err := driver.OpenDevice(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	return device
}

func TestRepresentorsAreDescribed(t *testing.T) {
	got, err := openSoftDevice(t, "03:00.0").DescribeRepresentors()
	want := []RepresentorInfo{
		{PCIAddress: "0000:b1:00.0", Function: "PF", VUID: "SOFT00000000MLNXS0D0F0", Interface: "pf0hpf"},
		{PCIAddress: "0000:b1:00.1", Function: "PF", VUID: "SOFT00000000MLNXS0D0F1", Interface: "pf1hpf"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestHostHasNoRepresentors(t *testing.T) {
	if got, err := openSoftDevice(t, "b1:00.0").DescribeRepresentors(); err != nil || got != nil {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestBadLimitsAreASoftError(t *testing.T) {
	_, err := Open(Options{Choice: ChooseSoft, SoftDir: t.TempDir(), SoftLimits: "max_msg_size=0"})
	failure, is := errors.AsType[*SoftError](err)
	if !is || !strings.Contains(failure.Reason, "max_msg_size") {
		t.Errorf("error %T %v", err, err)
	}
}

func TestInstallationThatIsAbsent(t *testing.T) {
	dir := t.TempDir()
	_, err := FindInstallation(dir)
	if failure, is := errors.AsType[*LoadError](err); !is || !strings.Contains(failure.Reason, dir) {
		t.Errorf("error %T %v", err, err)
	}
}
