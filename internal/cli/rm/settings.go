package rm

import (
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Settings holds the settings of rm.
type Settings struct {
	contact.Places
	Recursive bool
	Force     bool // what does not exist is no failure, and nothing is asked
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), []option.Option{
		device.Option(&s.Device), option.WithoutLetter(device.Representor(&s.Representor)), device.RoleOption(&s.Role),
	}, s.TimeOptions(), []option.Option{
		option.Everyday(option.WithLetter("r", option.Switch(option.AddedFlags, "recursive", &s.Recursive,
			"Remove directories with all that is in them"))),
		option.Everyday(option.WithLetter("f", option.Switch(option.AddedFlags, "force", &s.Force,
			"Do not ask, and take what does not exist for removed"))),
		option.Output(&s.Output, contact.OutputOfChanges),
	}, s.PeerOptions())
}

// SetPaths sets what to remove from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	err := s.SetPlaces(args, "remove", "rm takes :SHARE/PATH")
	for _, at := range s.Remote {
		switch {
		case err != nil:
		case contact.IsShare(at):
			err = exit.Usagef("PATH %s is a share itself: to remove all that is in it, write %s",
				quote.Text(at.String()), quote.Text(at.Daemon()+at.Share+"/*"))
		case strings.HasSuffix(at.Path, "/."):
			err = exit.Usagef("PATH %s names the content of a directory: leave out /. or write /*",
				quote.Text(at.String()))
		}
	}
	return err
}
