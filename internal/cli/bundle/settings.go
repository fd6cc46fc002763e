package bundle

import (
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Settings holds the settings of bundle.
type Settings struct {
	option.Logging
	Driver        device.Driver
	Device        string        // as for a copy
	Representor   string        // as for a copy
	Peer          bool          // exchange parts with a bundle of the other side
	Wait          time.Duration // for the peer to appear; always positive
	ParameterFile string        // with the settings of copies here; empty: none but the machine's own
	EventsFile    string        // JSON events of a run; empty: none
	LogFile       string        // log of a run; empty: none
	ListOnly      bool
	Overwrite     bool
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(s.LogOptions(),
		[]option.Option{device.DriverLogOption(&s.Driver), option.ParameterFileInto(&s.ParameterFile)},
		device.DriverOptions(&s.Driver),
		[]option.Option{
			device.Option(&s.Device), device.Representor(&s.Representor),
			option.Everyday(option.Switch(option.AddedFlags, "peer", &s.Peer,
				"Also ask the other side for its part: run bundle with --peer on both")),
			device.Wait(&s.Wait),
			option.Everyday(option.File(option.AddedFlags, "events-file", "FILE", &s.EventsFile,
				"Add the JSON events of a run, the standard output of a command with -o json")),
			option.Everyday(option.File(option.AddedFlags, "log-file", "FILE", &s.LogFile,
				"Add the log of a run, the standard error of a command with -l TRACE")),
			option.Everyday(option.Switch(option.AddedFlags, "list", &s.ListOnly, "Only print what would be in it")),
			option.Everyday(option.Switch(option.AddedFlags, "overwrite", &s.Overwrite, "Replace an existing FILE")),
		})
}
