package bench

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Sides are the devices that every measurement uses, by their addresses.
type Sides struct {
	Host, DPU, Representor string
}

// FindSides returns the first device of each side.
func FindSides(driver *doca.Driver) (Sides, error) {
	infos, err := driver.Devices()
	if err != nil {
		return Sides{}, err
	}
	var names Sides
	for _, info := range infos {
		switch {
		case info.IsHost() && names.Host == "":
			names.Host, names.Representor = info.PCIAddress, info.PCIAddress
		case info.IsDPU() && names.DPU == "":
			names.DPU = info.PCIAddress
		}
	}
	if names.Host == "" || names.DPU == "" {
		return names, errors.New("the driver does not have devices of both sides")
	}
	return names, nil
}
