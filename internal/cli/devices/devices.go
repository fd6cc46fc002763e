// Package devices lists devices, representors and capabilities.
package devices

import (
	"context"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
)

// Settings holds the settings of devices.
type Settings struct {
	option.Logging
	Driver device.Driver
	Output option.OutputForm
	Long   bool // all that is known of each device
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat([]option.Option{
		option.WithoutLetter(s.LevelOption()), s.FormatOption(), device.DriverLogOption(&s.Driver),
		option.ParameterFile(),
	}, device.DriverOptions(&s.Driver), []option.Option{
		option.WithLetter("l", option.Switch(option.AddedFlags, "long", &s.Long,
			"All that is known of each device, such as its limits and representors")),
		option.Output(&s.Output, "Output format; JSON names are stable, and new ones may be added"),
	})
}

// Command returns the command devices.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "devices",
		Summary: "List devices, representors and capabilities",
		About: `Lists every device of the driver that a copy would use: its names, the side it
can be, and the host functions it represents; with -l its capabilities, too.
With --driver ucx: the transports and network devices that UCX can use for
copies to other machines. Changes nothing.
`,
		Examples: `$ dma-copy devices
$ dma-copy devices -o json | jq -r '.devices[].pci_address'
$ dma-copy devices --driver ucx
`,
		Settings: &s,
		Run: func(_ context.Context, streams root.Streams, _ []string, log zerolog.Logger) error {
			if s.Driver.Name == string(connect.DriverUCX) {
				return listNetwork(streams, s)
			}
			return inventory.Look(s.Driver.Options(), func(driver *doca.Driver) error {
				connect.LogDriver(log, driver)
				return listDevices(streams, s, driver)
			})
		},
	}
}

func listDevices(streams root.Streams, s Settings, driver *doca.Driver) error {
	found, err := inventory.Take(driver)
	if err != nil {
		return err
	}
	if len(found.Devices) == 0 {
		return exit.Errorf(exit.Device, doca.HintDoctor, "no device found: %s",
			inventory.DriverTitle(string(driver.Name()), driver.Hardware(), driver.Version()))
	}
	return output.Print(streams.Stdout, s.Output, "devices", found, textOf(found, s.Long))
}

// listNetwork lists what connections with other machines can use.
func listNetwork(streams root.Streams, s Settings) error {
	found, err := inventory.TakeNetwork()
	if err != nil {
		return err
	}
	return output.Print(streams.Stdout, s.Output, "transports", found, textOfNetwork(found))
}
