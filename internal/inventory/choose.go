package inventory

import (
	"io/fs"
	"path"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// HintNameDevice is the hint where it is not clear which device is meant.
const HintNameDevice = "name one with -p"

// misfit returns the error of a device that was chosen and cannot do what was asked for. The message has the hint.
func misfit(format string, args ...any) error { return exit.Errorf(exit.Device, "", format, args...) }

// Selection holds the settings that select the device and the side of a copy.
type Selection struct {
	Device      string // empty: not given
	Representor string // empty: not given
	Role        Role
	Otherwise   string // what the user can do without any device, for a message; may be empty
}

// ChooseDevice returns the name of the device to open: the one that was asked for, or the only one that fits the role.
func ChooseDevice(devices []doca.DeviceInfo, s Selection) (string, error) {
	side := wantedSide(s)
	return chooseOnly(devices, s.Device, func(d doca.DeviceInfo) bool { return fits(d, side) }, "for this role",
		s.Otherwise)
}

// ChooseLocal returns the name of the device for a local copy: the one that was asked for, or the only one that copies.
func ChooseLocal(devices []doca.DeviceInfo, asked string) (string, error) {
	return chooseOnly(devices, asked, func(d doca.DeviceInfo) bool { return d.MemcpySupported }, "for a local copy", "")
}

// chooseOnly returns what was asked for, or else the name of the only device that fits.
func chooseOnly(
	devices []doca.DeviceInfo, asked string, fits func(doca.DeviceInfo) bool, what, otherwise string,
) (string, error) {
	if asked != "" {
		return asked, nil
	}
	hint := HintNameDevice
	if otherwise != "" {
		hint += ", or " + otherwise
	}
	var fitting []string
	for _, d := range devices {
		if fits(d) {
			fitting = append(fitting, d.Name())
		}
	}
	switch len(fitting) {
	case 1:
		return fitting[0], nil
	case 0:
		return "", misfit("no device fits %s: %s", what, hint)
	default:
		return "", exit.Usagef("--pci-addr is missing and several devices fit (%s): %s",
			strings.Join(fitting, ", "), hint)
	}
}

// wantedSide returns the role that the settings alone decide.
func wantedSide(s Selection) Role {
	if s.Role == RoleAuto && s.Representor != "" {
		return RoleDPU
	}
	return s.Role
}

func fits(d doca.DeviceInfo, side Role) bool {
	switch side {
	case RoleHost:
		return d.ClientSupported
	case RoleDPU:
		return d.ServerSupported
	default:
		return d.ClientSupported || d.ServerSupported
	}
}

// ChooseSide returns the side of a copy on the device, and an error if the device cannot be on the side that was asked
// for.
func ChooseSide(d doca.DeviceInfo, s Selection) (wire.Side, error) {
	side := wire.Host
	if s.Role == RoleDPU || (s.Role == RoleAuto && NativeSide(d) == wire.DPU) {
		side = wire.DPU
	}
	switch {
	case side == wire.DPU && !d.ServerSupported:
		return side, misfit(
			"%s is a host function and cannot be the DPU side: leave out --role, or name a device of the DPU",
			d.Name())
	case side == wire.Host && !d.ClientSupported:
		return side, misfit(
			"%s is a function of the DPU and cannot be the host side: leave out --role, or name a host function",
			d.Name())
	case side == wire.Host && s.Representor != "":
		return side, misfit(
			"%s is a host function and has no representors, so there is no %s: leave out -r on the host",
			d.Name(), s.Representor)
	}
	return side, nil
}

// NativeSide returns the side that the device belongs to, even if another one was asked for.
func NativeSide(d doca.DeviceInfo) wire.Side {
	if d.ServerSupported {
		return wire.DPU
	}
	return wire.Host
}

// Role is the side that this process is on.
type Role string

// The choices of --role.
const (
	RoleAuto Role = "auto"
	RoleHost Role = "host"
	RoleDPU  Role = "dpu"
)

// vendorNVIDIA is the PCI vendor of NVIDIA's network devices, which were Mellanox's, as the kernel shows it.
const vendorNVIDIA = "0x15b3"

// IsNVIDIA reports whether a device of this machine has the name and is made by NVIDIA. The name is a PCI address, or
// belongs to an RDMA device or a net device. sys is what the kernel shows in /sys.
func IsNVIDIA(sys fs.FS, name string) bool {
	places := []string{path.Join("class/infiniband", name, "device"), path.Join("class/net", name, "device")}
	if address, err := doca.ParsePCIAddress(name); err == nil {
		places = []string{path.Join("bus/pci/devices", address)}
	}
	for _, place := range places {
		vendor, err := fs.ReadFile(sys, path.Join(place, "vendor"))
		if err == nil && strings.TrimSpace(string(vendor)) == vendorNVIDIA {
			return true
		}
	}
	return false
}
