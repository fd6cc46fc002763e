// Package rm removes from a share of a daemon.
package rm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Command returns the command rm.
func Command() root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "rm",
		Summary: "Remove from a share of a daemon",
		Takes:   []string{"[PEER]:SHARE/PATH..."},
		About: `Removes files, symlinks, FIFOs, sockets and devices from a share of a daemon
(dma-copy serve), and with -r directories with all that is in them. This side's
key must have the right to write, for -r and patterns also to read, and the
share must permit that files are replaced. A symlink is removed itself, a share
never, and -r leaves mount points with all that is in them. "*", "?", "[a-z]"
and "**" in PATH match names, and "\" escapes; write them in quotes. On a
terminal, -r asks before it removes more than 10 entries. PEER is a name in the
configuration, and may be left out. A daemon on another machine is
ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address. -r is --recursive
here, and not the representor.
`,
		Examples: `host$ dma-copy rm ':inbox/*.tmp'
host$ dma-copy rm -r dpu:inbox/photos
`,
		Settings: s,
		Complete: contact.CompleteInShares,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			w := output.NewChanges(streams.Stdout, streams.Stderr, "removed", s.Output, log)
			return contact.InShares(ctx, streams, &s.Places, "rm", s.SetPaths(args), w, log,
				func(ctx context.Context, c *connect.Conn) error {
					return (&removal{Conn: c, settings: s, report: w}).run(ctx, streams)
				})
		},
		Refused: contact.Refused(&s.Output),
	}
}

// maxPaths bounds the memory of the paths to remove, in bytes: all of them are found before the first is removed.
const maxPaths = 256 << 20

// maxAsked is the number of entries above which rm -r asks.
const maxAsked = 10

// removal is one rm.
type removal struct {
	*connect.Conn
	settings *Settings
	report   *output.Changes

	all   []doomed
	count int // of their entries
	bytes int // of their paths
}

// doomed is one file, or one directory with what is in it.
type doomed struct {
	directory share.Remote // that it is in
	files     bool         // it must not be a directory
	names     []string     // below directory, in the order of their removal; none if all has to stay
}

// run finds all that is to be removed before it removes anything.
func (r *removal) run(ctx context.Context, streams root.Streams) error {
	for _, argument := range r.settings.Remote {
		if err := r.find(ctx, argument); err != nil {
			return err
		}
	}
	if r.settings.Recursive && r.count > maxAsked && !r.settings.Force && streams.Terminal && streams.Asks() {
		yes, err := root.Ask(ctx, streams.Stdin, streams.Stderr, fmt.Sprintf("remove %d entries?", r.count),
			func() error {
				_, err := r.Client.RoundTrip(ctx, nil)
				return err
			})
		if err != nil {
			return err
		}
		if !yes {
			return exit.Errorf(exit.Usage, "", "nothing was removed: the answer was not yes")
		}
	}
	for _, each := range r.all {
		if err := r.remove(ctx, each); err != nil {
			return err
		}
	}
	return r.report.End()
}

// find adds what an argument names. A failure that is about this argument alone is reported.
func (r *removal) find(ctx context.Context, argument share.Remote) error {
	x, err := r.Expand(ctx, argument, service.ListAll)
	if err != nil {
		return r.failed(argument, err)
	}
	if x.Entries == nil {
		return r.findPlace(ctx, x.Base)
	}
	last := "" // path of the last entry: with -r, what is below it goes with it
	for _, e := range x.Entries {
		if r.settings.Recursive {
			e = x.Outermost(e)
			if last != "" && (e.Path == last || strings.HasPrefix(e.Path, last+"/")) {
				continue
			}
		}
		last = e.Path
		if err := r.findEntry(ctx, x.Remote(e), e); err != nil {
			return err
		}
	}
	return nil
}

// findPlace adds an entry whose kind matters only for --recursive.
func (r *removal) findPlace(ctx context.Context, at share.Remote) error {
	var found share.Entry
	if r.settings.Recursive {
		_, err := r.Client.List(ctx, connect.PlaceOf(at), service.ListItself|service.ListAll,
			func(e share.Entry) error {
				found = e
				return nil
			})
		if err != nil {
			return r.failed(at, err)
		}
	}
	return r.findEntry(ctx, at, found)
}

func (r *removal) findEntry(ctx context.Context, at share.Remote, e share.Entry) error {
	place := connect.PlaceOf(at)
	above, name := path.Split(place.Path)
	d := doomed{directory: at, files: true, names: []string{name}}
	d.directory.Path = strings.TrimSuffix(above, "/")
	switch {
	case e.Mounted && r.settings.Recursive:
		return r.failed(at, isMounted(at))
	case e.Kind == wire.EntryDirectory && r.settings.Recursive:
		below, mounted, err := r.findBelow(ctx, place)
		if err != nil {
			return r.failed(at, err)
		}
		for _, each := range mounted {
			in := at
			in.Path = path.Join(place.Path, each)
			if err := r.failed(in, isMounted(in)); err != nil {
				return err
			}
		}
		d.files, d.names = false, nil
		for _, each := range below {
			d.names = append(d.names, path.Join(name, each))
		}
	default:
		if err := r.add(len(name)); err != nil {
			return err
		}
	}
	r.all, r.count = append(r.all, d), r.count+len(d.names)
	return nil
}

// findBelow returns the paths of a directory and of what is below it, each directory after its content, and of the
// mount points among it. The content of a mount point stays, and so do the directories above one.
func (r *removal) findBelow(ctx context.Context, at service.Place) (paths, mounted []string, err error) {
	stay := make(map[string]bool)
	end, err := r.Client.List(ctx, at, service.ListRecursive|service.ListAll, func(e share.Entry) error {
		last := len(mounted) - 1
		switch {
		case last >= 0 && strings.HasPrefix(e.Path, mounted[last]+"/"):
			return nil
		case e.Mounted:
			mounted = append(mounted, e.Path)
			for above := path.Dir(e.Path); !stay[above]; above = path.Dir(above) {
				stay[above] = true
			}
		default:
			paths = append(paths, path.Clean(e.Path))
		}
		return r.add(len(at.Path) + len(e.Path))
	})
	paths = slices.DeleteFunc(paths, func(each string) bool { return stay[each] })
	slices.Reverse(paths)
	return paths, mounted, errors.Join(err, connect.Incomplete(end))
}

// isMounted returns the error for a mount point below a directory that is to be removed, or such a directory.
func isMounted(at share.Remote) error {
	return job.NewError(job.ErrTarget, nil, "unmount it first",
		"cannot remove %s: it is a mount point, so nothing in it was removed", connect.PlaceOf(at).Path)
}

// add bounds the memory of the paths to remove: one more path has so many bytes.
func (r *removal) add(bytes int) error {
	if r.bytes += bytes; r.bytes > maxPaths {
		return job.NewError(job.ErrLimit, nil, "remove a part of them first",
			"the paths to remove have more than %d bytes, so nothing is removed", maxPaths)
	}
	return nil
}

// failed reports that something could not be removed, unless it does not exist and --force is given. It returns an
// error after which nothing else can be removed.
func (r *removal) failed(at share.Remote, err error) error {
	if report.Unfinished(err) || errors.Is(err, job.ErrLimit) {
		return err
	}
	if err := report.WithSide(r.Side.Is, err); exit.Code(err) != exit.Source || !r.settings.Force {
		r.report.Changed(at, err)
	}
	return nil
}

func (r *removal) remove(ctx context.Context, d doomed) error {
	request := service.RemoveRequest{Place: connect.PlaceOf(d.directory), Files: d.files, Paths: d.names}
	err := r.Client.Remove(ctx, request, func(name string, result service.Removal) error {
		at := d.directory
		at.Path = path.Join(at.Path, name)
		if result.Code == 0 {
			r.report.Changed(at, nil)
			return nil
		}
		return r.failed(at, &service.Refusal{Code: result.Code, Text: result.Text})
	})
	if refused, is := errors.AsType[*service.Refusal](err); is {
		at := d.directory
		at.Path = path.Join(at.Path, d.names[len(d.names)-1])
		return r.failed(at, refused)
	}
	return err
}

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
	s.Started.Access = share.ReadWrite
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
