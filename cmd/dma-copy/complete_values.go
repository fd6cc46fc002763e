package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// devices returns the names of the driver's devices with this beginning.
func (c completer) devices(word string) (offered []cobra.Completion) {
	s := c.settings()
	_ = c.look(s, func(_ *doca.Driver, devices []doca.DeviceInfo) error {
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

// representors returns the names of the representors of the chosen device, or of all, with this beginning.
func (c completer) representors(word string) (offered []cobra.Completion) {
	s, seen := c.settings(), map[string]bool{}
	_ = c.look(s, func(driver *doca.Driver, devices []doca.DeviceInfo) error {
		for _, d := range devices {
			named := inventory.Device{PCIAddress: d.PCIAddress, RDMAName: d.IBName, NetName: d.Interface}
			if !d.ServerSupported || s.Device != "" && !named.Named(s.Device) {
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

// look calls see with the driver that the settings select and its devices, if these are not those of other machines.
func (c completer) look(s *config.List, see func(*doca.Driver, []doca.DeviceInfo) error) error {
	if err := s.Driver.ValidateForDevice(); err != nil {
		return err
	}
	return inventory.Look(s.Driver.Options(), func(driver *doca.Driver) error {
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

// offerNames returns those names of one thing that have this beginning, of which an empty one is none, with its other
// names as a description. For an empty word it is the first one alone.
func offerNames(word, about string, names ...string) (offered []cobra.Completion) {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names[min(1, len(names)):])
	names = slices.Compact(names)
	for i, name := range names {
		if !strings.HasPrefix(name, word) || word == "" && i > 0 {
			continue
		}
		others := slices.Delete(slices.Clone(names), i, i+1)
		offered = append(offered, cobra.CompletionWithDesc(name, strings.Join(append(others, about), ", ")))
	}
	return offered
}

// keyNames completes the argument of keys.
func keyNames(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) == 0 {
		var actions []string
		for _, action := range keysActions {
			actions = append(actions, action.name)
		}
		return offer(actions, word)
	}
	overwrites := c.flags.Changed("overwrite")
	switch {
	case before[0] == keysTrust && len(before) > 1:
		return nil, files // one with the line of a key
	case len(before) == 1 && (before[0] == keysRemove || before[0] == keysTrust && overwrites):
		return c.trusted(word), onlyThese
	}
	return nil, onlyThese
}

// trusted returns the names of the trusted keys with this beginning.
func (c completer) trusted(word string) (offered []cobra.Completion) {
	store, err := openKeys(c.streams.env, c.settings().Keys)
	if err != nil {
		return nil
	}
	known, err := store.Load()
	if err != nil {
		return nil
	}
	for _, grant := range known.All() {
		if strings.HasPrefix(grant.Name, word) {
			offered = append(offered, cobra.CompletionWithDesc(grant.Name, cmp.Or(grant.Comment, grant.Key.Words())))
		}
	}
	return offered
}

// configArguments completes show and a command, or check and a file. The flags behind the command are completed as its
// own, see shownBy.
func configArguments(_ completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(before) == 0:
		return offer([]string{configShow, configCheck}, word)
	case len(before) == 1 && before[0] == configCheck:
		return nil, files
	case len(before) == 1 && before[0] == configShow:
		return offer(append(names(commands()), configCopy), word)
	}
	return nil, onlyThese
}

// shownBy returns the command and the flags behind config show, if a command is there, and those of the commands that
// complete them: with a copy, and without arguments, which config show does not take.
func shownBy(before []string, list []command) (shown []string, flagsOnly []command) {
	show := slices.Index(before, configShow)
	if show < 1 || before[0] != configName || show+1 == len(before) {
		return nil, list
	}
	flagsOnly = append(slices.Clone(list), command{name: configCopy, settings: &config.Copy{}})
	if !slices.Contains(names(flagsOnly), before[show+1]) {
		return nil, list
	}
	for i := range flagsOnly {
		flagsOnly[i].complete = nil
	}
	return before[show+1:], flagsOnly
}
