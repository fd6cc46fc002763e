package device

import (
	"errors"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/inventory"
)

// located selects the driver whose devices a shell is offered, and the device whose representors.
type located struct {
	option.Logging
	driver Driver
	device string
}

// Table implements option.Settings.
func (s *located) Table() []option.Option {
	return append(CommonOptions(&s.Logging, &s.driver), Option(&s.device))
}

// findDevices returns the names of the driver's devices with this beginning.
func findDevices(load func(option.Settings), word string) (offered []string) {
	var s located
	load(&s)
	_ = s.look(func(_ *doca.Driver, devices []doca.DeviceInfo) error {
		for _, d := range devices {
			about := "host side"
			if d.ServerSupported {
				about = "DPU side"
			}
			address := shortAddress(d.PCIAddress, word)
			offered = append(offered, offerNames(word, about, address, d.IBName, d.Interface)...)
		}
		return nil
	})
	return offered
}

// findRepresentors returns the names of the representors of the chosen device, or of all, with this beginning.
func findRepresentors(load func(option.Settings), word string) (offered []string) {
	var s located
	load(&s)
	seen := map[string]bool{}
	_ = s.look(func(driver *doca.Driver, devices []doca.DeviceInfo) error {
		for _, d := range devices {
			named := inventory.Device{PCIAddress: d.PCIAddress, RDMAName: d.IBName, NetName: d.Interface}
			if !d.ServerSupported || s.device != "" && !named.Named(s.device) {
				continue
			}
			there, err := representorsOf(driver, d)
			if err != nil {
				return err
			}
			for _, r := range there {
				if seen[r.Name()] { // by another device of the DPU
					continue
				}
				seen[r.Name()] = true
				about := strings.TrimSpace(r.Function + " behind " + shortAddress(d.PCIAddress, ""))
				offered = append(offered, offerNames(word, about, shortAddress(r.Name(), word), r.Interface, r.VUID)...)
			}
		}
		return nil
	})
	return offered
}

// look calls see with the driver that the settings select and its devices, unless the driver is for other machines.
func (s *located) look(see func(*doca.Driver, []doca.DeviceInfo) error) error {
	options := s.driver.Options()
	if err := connect.CheckDriver(options); err != nil {
		return err
	}
	options.LogLevel = int(option.LevelDisable)
	return inventory.Look(options, func(driver *doca.Driver) error {
		devices, err := driver.Devices()
		if err != nil {
			return err
		}
		return see(driver, devices)
	})
}

func representorsOf(driver *doca.Driver, d doca.DeviceInfo) (there []doca.RepresentorInfo, err error) {
	device, err := driver.OpenDevice(d.Name())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	return device.DescribeRepresentors()
}

// shortAddress returns a PCI address without the domain 0000, unless the word has begun with that.
func shortAddress(address, word string) string {
	if short, is := strings.CutPrefix(address, "0000:"); is && !strings.HasPrefix(word, "0000") {
		return short
	}
	return address
}

// offerNames returns those names of one thing that begin with word, each with the other names as a description. Empty
// names are left out. For an empty word it returns the first name alone.
func offerNames(word, about string, names ...string) (offered []string) {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names[min(1, len(names)):])
	names = slices.Compact(names)
	for i, name := range names {
		if !strings.HasPrefix(name, word) || word == "" && i > 0 {
			continue
		}
		others := slices.Delete(slices.Clone(names), i, i+1)
		offered = append(offered, name+"\t"+strings.Join(append(others, about), ", "))
	}
	return offered
}
