package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// errNoFit means that the device or the side cannot be worked out from what was asked for and what there is.
var errNoFit = errors.New("no device fits")

// chooseDevice returns the name of the device to open: the one that was asked for, or the only one that fits the role.
func chooseDevice(devices []doca.DeviceInfo, s settings) (string, error) {
	if s.Device != "" {
		return s.Device, nil
	}
	var fitting []string
	for _, d := range devices {
		if fits(d, wantedSide(s)) {
			fitting = append(fitting, d.PCIAddress)
		}
	}
	switch len(fitting) {
	case 1:
		return fitting[0], nil
	case 0:
		return "", fmt.Errorf("%w: there is none for this role: name one with -p", errNoFit)
	default:
		return "", usagef("--pci-addr is missing and several devices fit (%s): name one with -p",
			strings.Join(fitting, ", "))
	}
}

// wantedSide is what the settings alone say of the role.
func wantedSide(s settings) role {
	if s.Role == roleAuto && s.Representor != "" {
		return roleDPU
	}
	return s.Role
}

func fits(d doca.DeviceInfo, side role) bool {
	switch side {
	case roleHost:
		return d.ClientSupported
	case roleDPU:
		return d.ServerSupported
	default:
		return d.ClientSupported || d.ServerSupported
	}
}

// chooseSide decides the role by what the device can be, and refuses what it cannot.
func chooseSide(d doca.DeviceInfo, s settings) (negotiate.Side, error) {
	side := negotiate.Host
	if s.Role == roleDPU || (s.Role == roleAuto && d.ServerSupported) {
		side = negotiate.DPU
	}
	switch {
	case side == negotiate.DPU && !d.ServerSupported:
		return side, fmt.Errorf("%w: %s is a host function and cannot be the DPU side: leave out --role, or name a device of the DPU",
			errNoFit, d.PCIAddress)
	case side == negotiate.Host && !d.ClientSupported:
		return side, fmt.Errorf("%w: %s is a function of the DPU and cannot be the host side: leave out --role, or name a host function",
			errNoFit, d.PCIAddress)
	case side == negotiate.Host && s.Representor != "":
		return side, fmt.Errorf("%w: %s is a host function and has no representors, so there is no %s: leave out -r on the host",
			errNoFit, d.PCIAddress, s.Representor)
	}
	return side, nil
}
