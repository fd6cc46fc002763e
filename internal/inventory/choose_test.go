package inventory

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Any function that copies is one for a local copy, whichever side it is on.
func TestChooseLocal(t *testing.T) {
	host := doca.DeviceInfo{PCIAddress: "0000:b1:00.0", Capabilities: doca.Capabilities{MemcpySupported: true}}
	dpu := doca.DeviceInfo{PCIAddress: "0000:03:00.0", Capabilities: doca.Capabilities{MemcpySupported: true}}
	other := doca.DeviceInfo{PCIAddress: "0000:5e:00.0", Capabilities: doca.Capabilities{ClientSupported: true}}
	for name, tc := range map[string]struct {
		devices []doca.DeviceInfo
		asked   string
		want    string // empty: refused
	}{
		"named":         {[]doca.DeviceInfo{host, dpu}, "mlx5_7", "mlx5_7"},
		"one of a host": {[]doca.DeviceInfo{other, host}, "", host.PCIAddress},
		"one of a DPU":  {[]doca.DeviceInfo{dpu}, "", dpu.PCIAddress},
		"two":           {[]doca.DeviceInfo{host, dpu}, "", ""},
		"none":          {[]doca.DeviceInfo{other}, "", ""},
	} {
		if got, err := ChooseLocal(tc.devices, tc.asked); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q and error %v, want %q", name, got, err, tc.want)
		}
	}
}

// TestChooseDevice covers a single fitting device, which the software device with its two functions per side cannot
// show.
func TestChooseDevice(t *testing.T) {
	host := doca.DeviceInfo{PCIAddress: "0000:b1:00.0", Capabilities: doca.Capabilities{ClientSupported: true}}
	dpu := doca.DeviceInfo{PCIAddress: "0000:03:00.0", Capabilities: doca.Capabilities{ServerSupported: true}}
	other := doca.DeviceInfo{PCIAddress: "0000:5e:00.0"}
	sf := doca.DeviceInfo{PCIAddress: host.PCIAddress, IBName: "mlx5_5", Function: "SF",
		Capabilities: host.Capabilities}
	cases := []struct {
		name    string
		devices []doca.DeviceInfo
		s       Selection
		want    string // empty: refused
	}{
		{"named", []doca.DeviceInfo{host, dpu}, Selection{Device: "mlx5_7"}, "mlx5_7"},
		{"only one", []doca.DeviceInfo{other, host}, Selection{Role: RoleAuto}, host.PCIAddress},
		{"only one of the role", []doca.DeviceInfo{host, dpu}, Selection{Role: RoleDPU}, dpu.PCIAddress},
		{"a representor makes the role", []doca.DeviceInfo{host, dpu},
			Selection{Role: RoleAuto, Representor: "b1:00.0"}, dpu.PCIAddress},
		{"an SF", []doca.DeviceInfo{sf}, Selection{Role: RoleAuto}, "mlx5_5"},
		{"two", []doca.DeviceInfo{host, dpu}, Selection{Role: RoleAuto}, ""},
		{"none of the role", []doca.DeviceInfo{host, other}, Selection{Role: RoleDPU}, ""},
		{"none", nil, Selection{Role: RoleAuto}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ChooseDevice(tc.devices, tc.s)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q and error %v, want %q", got, err, tc.want)
			}
		})
	}
}

// The PCI address of an SF would name its PF.
func TestSideErrorNamesTheSF(t *testing.T) {
	sf := doca.DeviceInfo{PCIAddress: "0000:b1:00.0", IBName: "mlx5_5", Function: "SF",
		Capabilities: doca.Capabilities{ClientSupported: true}}
	for _, s := range []Selection{{Role: RoleDPU}, {Role: RoleHost, Representor: "b1:00.0"}} {
		_, err := ChooseSide(sf, s)
		if err == nil || !strings.HasPrefix(err.Error(), "mlx5_5 is a host function") {
			t.Errorf("%+v: error %v", s, err)
		}
	}
}
