package mkdir

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Settings holds the settings of mkdir.
type Settings struct {
	contact.Places
	Parents bool // those above a directory are created, too, and it may exist
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), []option.Option{
		option.WithoutLetter(device.Option(&s.Device)), device.Representor(&s.Representor), device.RoleOption(&s.Role),
	}, s.TimeOptions(), []option.Option{
		option.Everyday(option.WithLetter("p", option.Switch(option.AddedFlags, "parents", &s.Parents,
			"Create missing directories above it, too; one that exists is no failure"))),
		option.Output(&s.Output, contact.OutputOfChanges),
	}, s.PeerOptions())
}

// SetPaths sets what to create from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	err := s.SetPlaces(args, "create", "mkdir takes :SHARE/PATH")
	for _, at := range s.Remote {
		if err == nil && contact.IsShare(at) {
			err = exit.Usagef("PATH %s is a share itself: name a directory in it, as in :SHARE/PATH",
				quote.Text(at.String()))
		}
	}
	return err
}
