package config

import (
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Settings holds the settings of config.
type Settings struct {
	option.Logging
	Output option.OutputForm
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.Output(&s.Output, "Output format, in front of the arguments"),
	)
}
