package bench

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// ErrOneSided means that the driver does not have both a host function and a DPU function that represents it.
var ErrOneSided = errors.New("the driver does not have devices of both sides")

// sideNames are the devices that every measurement uses.
type sideNames struct {
	host, dpu, representor string
}

// openDriver opens the driver in a runtime directory of its own.
func (p Plan) openDriver(folder, limits string) (*doca.Driver, error) {
	options := p.Driver
	options.SoftDir, options.SoftLimits = folder, limits
	if options.Choice == doca.ChooseAuto {
		options.Choice = doca.ChooseSoft
	}
	return doca.Open(options)
}

// driverFlags returns the flags that make a copy use the same driver.
func driverFlags(options doca.Options) []string {
	if options.Choice != doca.ChooseDOCA {
		return []string{"--driver", "soft"}
	}
	flags := []string{"--driver", "doca"}
	if options.LibraryDir != "" {
		flags = append(flags, "--doca-libdir", options.LibraryDir)
	}
	return flags
}

// findSides returns the first device of each side.
func findSides(driver *doca.Driver) (sideNames, error) {
	infos, err := driver.Devices()
	if err != nil {
		return sideNames{}, err
	}
	var names sideNames
	for _, info := range infos {
		switch {
		case info.IsHost() && names.host == "":
			names.host, names.representor = info.PCIAddress, info.PCIAddress
		case info.IsDPU() && names.dpu == "":
			names.dpu = info.PCIAddress
		}
	}
	if names.host == "" || names.dpu == "" {
		return names, ErrOneSided
	}
	return names, nil
}
