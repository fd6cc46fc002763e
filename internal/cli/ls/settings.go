package ls

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Settings holds the settings of ls.
type Settings struct {
	contact.Places
	Long      bool
	Recursive bool
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat([]option.Option{
		option.WithoutLetter(s.LevelOption()), s.FormatOption(), device.DriverLogOption(&s.Driver),
		option.ParameterFile(),
	}, device.DriverOptions(&s.Driver), s.Reach.Table(), []option.Option{
		option.Everyday(option.WithLetter("l", option.Switch(option.AddedFlags, "long", &s.Long,
			"Also list kind and mode, size and modification time"))),
		option.Everyday(option.Switch(option.AddedFlags, "recursive", &s.Recursive,
			"List directories with everything below them")),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
	}, s.PeerOptions())
}

// SetPaths sets what to list from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	return s.SetPlaces(args, "list", "ls takes :, which lists the shares, or :SHARE/PATH")
}
