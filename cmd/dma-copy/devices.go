package main

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
)

func devicesCommand() command {
	var s config.Devices
	return command{
		name:    "devices",
		summary: "List devices, representors and capabilities",
		about: `Lists every device of the driver that a copy would use: its names, the side it
can be, the host functions it represents, and its capabilities. With --driver
ucx: the transports and network devices that UCX can use for copies to other
machines. Changes nothing.
`,
		examples: `$ dma-copy devices
$ dma-copy devices -o json | jq -r '.devices[].pci_address'
$ dma-copy devices --driver ucx
`,
		settings: &s,
		run: func(_ context.Context, streams streams, _ []string, log zerolog.Logger) error {
			if s.Driver.Name == config.DriverUCX {
				return listNetwork(streams, s)
			}
			return inventory.Look(s.Driver.Options(), func(driver *doca.Driver) error {
				logDriver(log, driver)
				return listDevices(streams, s, driver)
			})
		},
	}
}

func listDevices(streams streams, s config.Devices, driver *doca.Driver) error {
	found, err := inventory.Take(driver)
	if err != nil {
		return err
	}
	if len(found.Devices) == 0 {
		return exit.Errorf(exit.Device, output.HintDoctor, "no device found: %s",
			inventory.DriverTitle(string(driver.Name()), driver.Hardware(), driver.Version()))
	}
	if err := inventory.Write(streams.stdout, found, s.Output); err != nil {
		return fmt.Errorf("print the devices: %w", err)
	}
	return nil
}

// listNetwork lists what connections with other machines can use.
func listNetwork(streams streams, s config.Devices) error {
	found, err := inventory.TakeNetwork()
	if err != nil {
		return err
	}
	if err := inventory.WriteNetwork(streams.stdout, found, s.Output); err != nil {
		return fmt.Errorf("print the transports: %w", err)
	}
	return nil
}
