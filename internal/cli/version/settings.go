package version

import (
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Settings holds the settings of version.
type Settings struct {
	option.Logging
	Driver device.Driver
	Output option.OutputForm
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return append(device.CommonOptions(&s.Logging, &s.Driver),
		option.Output(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}
