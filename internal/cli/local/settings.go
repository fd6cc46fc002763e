package local

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Settings holds the settings of local: those of a copy that it has, with the source as File. All others are zero.
type Settings struct {
	copying.Settings
	Target string // where the copy lands; Stream for stdout; never empty after SetPaths
}

// Table implements Settings. A local copy has no other side, and names what it copies in its arguments.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), s.DemandOptions(),
		s.CommandOptions(copying.OneCommand), s.ExistingOptions(copying.OneCommand),
		[]option.Option{copying.MakePathOption(&s.Options.MakePath)})
}

// SetPaths sets source and target from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	names, fields := [...]string{"SRC", "DST"}, [...]*string{&s.File, &s.Target}
	for i, name := range names {
		if i >= len(args) {
			return exit.Usagef("%s is missing: dma-copy local takes SRC and DST, what to copy and the copy", name)
		}
		path, err := option.ParseFile(args[i])
		if err != nil {
			return exit.Usagef("%s %s: %w", name, quote.Text(args[i]), err)
		}
		*fields[i] = path
	}
	if len(args) > len(names) {
		return exit.Usagef("unexpected argument %s: dma-copy local takes SRC and DST", quote.Text(args[len(names)]))
	}
	if err := copying.CheckTarget(s.Target, s.Target, s.File, false); err != nil {
		return err
	}
	s.Target = copying.Landing(s.File, s.Target)
	return nil
}

// Validate checks the settings of a local copy against each other.
func (s Settings) Validate() error {
	if s.File == option.Stream && s.Target == option.Stream {
		return exit.Usagef("SRC and DST are both -: name a file as one of them")
	}
	return s.ValidateCommon(s.StreamArgument())
}

// StreamArgument returns the argument that stands for a standard stream, or nothing.
func (s Settings) StreamArgument() string {
	switch option.Stream {
	case s.File:
		return "SRC -"
	case s.Target:
		return "DST -"
	}
	return ""
}
