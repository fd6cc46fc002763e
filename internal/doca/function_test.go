//go:build cgo

package doca

import (
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// reversed lists devices and representors in the opposite order, which DOCA does not promise either.
type reversed struct{ cabi.ABI }

func (r reversed) DevinfoCreateList() (cabi.DevinfoList, []cabi.Devinfo, error) {
	list, infos, err := r.ABI.DevinfoCreateList()
	slices.Reverse(infos)
	return list, infos, err
}

func (r reversed) RepCreateList(d cabi.Dev) (cabi.RepInfoList, []cabi.RepInfo, error) {
	list, infos, err := r.ABI.RepCreateList(d)
	slices.Reverse(infos)
	return list, infos, err
}

func openWithFunctions(t *testing.T, functions string) *Driver {
	t.Helper()
	driver, err := Open(Options{Choice: ChooseSoft, SoftDir: t.TempDir(), SoftFunctions: functions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestKindsOfFunctions(t *testing.T) {
	driver := openWithFunctions(t, "vf,sf")
	driver.abi = reversed{driver.abi}
	infos, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	var got []DeviceInfo
	for _, info := range infos {
		if info.IsHost() {
			got = append(got, DeviceInfo{
				PCIAddress: info.PCIAddress, IBName: info.IBName, Function: info.Function, SFIndex: info.SFIndex,
			})
		}
	}
	want := []DeviceInfo{
		{PCIAddress: "0000:b1:00.2", IBName: "mlx5_4", Function: "VF"},
		{PCIAddress: "0000:b1:00.1", IBName: "mlx5_1", Function: "PF"},
		{PCIAddress: "0000:b1:00.0", IBName: "mlx5_0", Function: "PF"},
		{PCIAddress: "0000:b1:00.0", IBName: "mlx5_5", Function: "SF", SFIndex: 4},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// An SF has the PCI address of its PF.
func TestNamesOpenTheirOwnFunction(t *testing.T) {
	driver := openWithFunctions(t, "vf,sf")
	driver.abi = reversed{driver.abi}
	infos, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"b1:00.0": "mlx5_0", "mlx5_5": "mlx5_5", "enp177s0f0s4": "mlx5_5"}
	for _, info := range infos {
		names[info.Name()] = info.IBName
	}
	if len(names) != len(infos)+2 { // the short address and the network device
		t.Errorf("names %v for %d devices", names, len(infos))
	}
	for name, want := range names {
		device, err := driver.OpenDevice(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := device.Info().IBName; got != want {
			t.Errorf("%s opened %s, want %s", name, got, want)
		}
		if err := device.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unreadable is a driver that cannot read the PCI address of one device.
type unreadable struct {
	cabi.ABI
	ibName string
}

var errUnreadable = &Error{Op: "doca_devinfo_get_pci_addr_str", Code: CodeDriver}

func (u unreadable) DevinfoPCIAddress(info cabi.Devinfo) (string, error) {
	if u.DevinfoIBName(info) == u.ibName {
		return "", errUnreadable
	}
	return u.ABI.DevinfoPCIAddress(info)
}

// A device that cannot be described keeps no other from being opened, wherever it is in the list.
func TestUnreadableDeviceIsLeftOut(t *testing.T) {
	driver := openWithFunctions(t, "")
	soft := driver.abi
	addresses := map[string]string{
		"mlx5_0": "b1:00.0", "mlx5_1": "b1:00.1", "mlx5_2": "03:00.0", "mlx5_3": "03:00.1",
	}
	for broken := range addresses {
		driver.abi = unreadable{soft, broken}
		for name, address := range addresses {
			device, err := driver.OpenDevice(address)
			if name == broken {
				if !errors.Is(err, errUnreadable) {
					t.Errorf("%s cannot be read: got %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with %s unreadable: %v", name, broken, err)
				continue
			}
			if got := device.Info().IBName; got != name {
				t.Errorf("%s opened %s, want %s", address, got, name)
			}
			if err := device.Close(); err != nil {
				t.Error(err)
			}
		}
		if infos, err := driver.Devices(); !errors.Is(err, errUnreadable) || infos != nil {
			t.Errorf("the list has %d devices, error %v", len(infos), err)
		}
	}
}

// openFirstDPU opens the first function of the DPU for the rest of the test.
func openFirstDPU(t *testing.T, driver *Driver) *Device {
	t.Helper()
	device, err := driver.OpenDevice("03:00.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	return device
}

func TestRepresentorsShowTheirFunction(t *testing.T) {
	driver := openWithFunctions(t, "vf,sf")
	driver.abi = reversed{driver.abi}
	device := openFirstDPU(t, driver)
	got, err := device.DescribeRepresentors()
	want := []RepresentorInfo{
		{PCIAddress: "0000:b1:00.2", Function: "VF", VUID: "SOFT00000000MLNXS0D0F0VF1", Interface: "pf0vf0"},
		{PCIAddress: "0000:b1:00.1", Function: "PF", VUID: "SOFT00000000MLNXS0D0F1", Interface: "pf1hpf"},
		{PCIAddress: "0000:b1:00.0", Function: "PF", VUID: "SOFT00000000MLNXS0D0F0", Interface: "pf0hpf"},
		{PCIAddress: "0000:b1:00.0", Function: "SF", VUID: "SOFT00000000CMLNXS0D0F0SF32768",
			Interface: "en3f0c1pf0sf4"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
	names := []string{"0000:b1:00.2", "0000:b1:00.1", "0000:b1:00.0", "en3f0c1pf0sf4"}
	if got, err := device.Representors(); err != nil || !slices.Equal(got, names) {
		t.Errorf("names %v, error %v", got, err)
	}
	_, err = device.OpenRepresentor("ff:1f.7")
	if missing, is := errors.AsType[*NotFoundError](err); !is || !slices.Equal(missing.Available, names) {
		t.Errorf("got %v, want one that is missing among %v", err, names)
	}
}

// Each name of a representor opens it, and the PCI address that a PF shares with its SF opens that of the PF.
func TestNamesOpenTheirOwnRepresentor(t *testing.T) {
	driver := openWithFunctions(t, "vf,sf")
	driver.abi = reversed{driver.abi}
	device := openFirstDPU(t, driver)
	for name, want := range map[string]string{
		"b1:00.0": "pf0hpf", "0000:B1:00.0": "pf0hpf", "pf0hpf": "pf0hpf", "SOFT00000000MLNXS0D0F0": "pf0hpf",
		"b1:00.2": "pf0vf0", "pf0vf0": "pf0vf0", "SOFT00000000MLNXS0D0F0VF1": "pf0vf0",
		"en3f0c1pf0sf4": "en3f0c1pf0sf4", "SOFT00000000CMLNXS0D0F0SF32768": "en3f0c1pf0sf4",
	} {
		rep, err := device.OpenRepresentor(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := rep.Info().Interface; got != want {
			t.Errorf("%s opened %s, want %s", name, got, want)
		}
		if err := rep.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A release of DOCA before 2.6 does not know the network device of a representor.
func TestNameOfRepresentor(t *testing.T) {
	sf := RepresentorInfo{PCIAddress: "0000:b1:00.0", Function: "SF", VUID: "SF32768", Interface: "en3f0c1pf0sf4"}
	older, nameless := sf, sf
	older.Interface = ""
	nameless.Interface, nameless.VUID = "", ""
	for want, info := range map[string]RepresentorInfo{
		"en3f0c1pf0sf4": sf, "SF32768": older, "0000:b1:00.0": nameless,
		"0000:b1:00.1": {PCIAddress: "0000:b1:00.1", Function: "PF", VUID: "F1", Interface: "pf1hpf"},
	} {
		if got := info.Name(); got != want || !info.Named(got) {
			t.Errorf("%+v has the name %q, want %q", info, got, want)
		}
		if info.Named("") || info.Named("b1:00:0") {
			t.Errorf("%+v has the name of nothing", info)
		}
	}
}

// unreadableRep is a driver that cannot read the PCI address of one representor's function.
type unreadableRep struct {
	cabi.ABI
	network string // network device of the representor
}

func (u unreadableRep) RepPCIAddress(info cabi.RepInfo) (string, error) {
	if u.RepInterface(info) == u.network {
		return "", errUnreadable
	}
	return u.ABI.RepPCIAddress(info)
}

// A representor that cannot be described keeps no other from being opened or listed, wherever it is in the list.
func TestUnreadableRepresentorIsLeftOut(t *testing.T) {
	names := []string{"pf0hpf", "pf1hpf", "pf0vf0", "en3f0c1pf0sf4"}
	device := openFirstDPU(t, openWithFunctions(t, "vf,sf"))
	soft := device.abi
	for _, broken := range names {
		device.abi = unreadableRep{soft, broken}
		for _, name := range names {
			openUnlessBroken(t, device, name, broken)
		}
		infos, err := device.DescribeRepresentors()
		if !errors.Is(err, errUnreadable) || len(infos) != len(names)-1 {
			t.Errorf("%s cannot be read: the list has %d representors, error %v", broken, len(infos), err)
		}
	}
}

// openUnlessBroken opens a representor, or expects the error of the one that cannot be described.
func openUnlessBroken(t *testing.T, device *Device, name, broken string) {
	t.Helper()
	rep, err := device.OpenRepresentor(name)
	switch {
	case name == broken && !errors.Is(err, errUnreadable):
		t.Errorf("%s cannot be read: got %v", name, err)
	case name != broken && err != nil:
		t.Errorf("%s with %s unreadable: %v", name, broken, err)
	case err == nil:
		if err := rep.Close(); err != nil {
			t.Error(err)
		}
	}
}
