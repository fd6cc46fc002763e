// Package ls lists the shares of a daemon, and what is in them.
package ls

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
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
		option.Everyday(option.WithLetter("R", option.Switch(option.AddedFlags, "recursive", &s.Recursive,
			"List directories with everything below them"))),
		option.NoEffect("a", "all", "No effect: every entry is listed"),
		option.NoEffect("n", "dry-run", "No effect: a list changes nothing"),
		option.NoEffect("P", "progress", "No effect: a list has no progress"),
		option.NoEffect("v", "verbose", "No effect: -l lists more"),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
	}, s.PeerOptions())
}

// SetPaths sets what to list from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	return s.SetPlaces(args, "list", "ls takes :, which lists the shares, or :SHARE/PATH")
}

// Command returns the command ls.
func Command() root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "ls",
		Summary: "List the shares of a daemon, or what is in them",
		Takes:   []string{"[PEER]:", "[PEER]:SHARE[/PATH]..."},
		About: `Lists the shares of a daemon (dma-copy serve) on the other side that this side's
key may use, or what is in a directory of a share, or what a pattern in PATH
matches ("*.jpg", in quotes). PEER is a name in the configuration, and may be
left out. A daemon on another machine is ucx://HOST[:PORT]/[SHARE[/PATH]], or
such a name with an address. ssh://[USER@]HOST[:PORT]/PATH is on a machine that
ssh logs in to, see dma-copy pull --help.
`,
		Examples: `host$ dma-copy ls :
host$ dma-copy ls -l dpu:inbox/photos
here$ dma-copy ls ucx://lab.example/
`,
		Settings: s,
		Complete: contact.CompleteInShares,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			w := newListing(streams.Stdout, s.Output, s.Long, log)
			return contact.InShares(ctx, streams, &s.Places, "list", s.SetPaths(args), w, log,
				func(ctx context.Context, c *connect.Conn) error { return runList(ctx, c, s, w) })
		},
		Refused: contact.Refused(&s.Output),
	}
}

func runList(ctx context.Context, c *connect.Conn, s *Settings, w *listing) error {
	for _, place := range s.Remote {
		if err := listArgument(ctx, c, s, place, w); err != nil {
			return err
		}
	}
	return w.end()
}

// listArgument lists one argument: what a pattern matches by itself, and anything else as a place.
func listArgument(ctx context.Context, c *connect.Conn, s *Settings, at share.Remote, w *listing) error {
	x, err := c.Expand(ctx, at, service.ListAll)
	if err != nil {
		return err
	}
	if x.Entries == nil {
		return listPlace(ctx, c, s, x.Base, w)
	}
	w.at(x.Base, len(s.Remote) > 1)
	for _, e := range x.Entries {
		w.entry(e, false)
		if !s.Recursive || e.Kind != wire.EntryDirectory {
			continue
		}
		const flags = service.ListRecursive | service.ListAll
		end, err := c.Client.List(ctx, connect.PlaceOf(x.Remote(e)), flags, func(below share.Entry) error {
			if below.Path != "" {
				below.Path = path.Join(e.Path, below.Path)
				w.entry(below, false)
			}
			return nil
		})
		if err := errors.Join(err, connect.Incomplete(end)); err != nil {
			return err
		}
	}
	return nil
}

// listPlace lists one place. A directory is listed by what is in it, anything else by itself.
func listPlace(ctx context.Context, c *connect.Conn, s *Settings, place share.Remote, w *listing) error {
	at := connect.PlaceOf(place)
	var flags service.ListFlags
	if at.Share != "" {
		flags = service.ListAll
	}
	if s.Recursive && at.Share != "" {
		flags |= service.ListRecursive
	}
	w.at(place, len(s.Remote) > 1)
	end, err := c.Client.List(ctx, at, flags, func(e share.Entry) error {
		switch {
		case e.Path == "" && e.Kind == wire.EntryDirectory:
			return nil // its content follows
		case e.Path == "":
			e.Path = path.Base(at.Path)
		}
		w.entry(e, at.Share == "")
		return nil
	})
	return errors.Join(err, connect.Incomplete(end))
}
