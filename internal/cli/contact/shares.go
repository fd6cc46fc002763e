package contact

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// InShares carries out a command in the shares of one daemon within --timeout, unless its arguments were refused, and
// reports its error to w. request names it in the error of a lost connection.
func InShares(
	ctx context.Context, streams root.Streams, s *Places, request string, refused error, w interface {
		Begin(report.Path)
		Fail(error)
	}, log zerolog.Logger, run func(context.Context, *Conn) error,
) error {
	if refused != nil {
		return output.Ended(w, log, refused)
	}
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	daemon := reachForPlaces(s)
	daemon.Waits = root.WaitOutput(streams, s.Output, false, log)
	ctx, c, err := Connect(ctx, streams, daemon, log)
	if err == nil {
		w.Begin(c.Path)
		err = run(ctx, c)
		c.End(&err)
	}
	return output.Ended(w, log, report.InRequest(request, err))
}

// Refused returns the root.Command.Refused of a command without another report than events.
func Refused(form *option.OutputForm) func(root.Streams, error) error {
	return func(streams root.Streams, err error) error {
		return output.Ended(output.NewEvents(streams.Stdout, *form, zerolog.Nop()), zerolog.Nop(), err)
	}
}

// reachForPlaces returns how a command that copies nothing reaches its daemon.
func reachForPlaces(s *Places) Reach {
	return Reach{Contact: s.Contact, Reach: s.Reach, Daemon: s.Remote[0]}
}

// PlaceOf returns a place as a request names it.
func PlaceOf(r share.Remote) service.Place {
	return service.Place{Share: r.Share, Path: path.Clean("/" + r.Path)[1:]}
}

// maxExpanded bounds the memory of the entries that one pattern names, in bytes.
const maxExpanded = 64 << 20

// entryMemory is about what an entry takes besides its path.
const entryMemory = 200

// expansion has the entries that an argument names.
type expansion struct {
	Base    share.Remote  // of the directory that the entries are below; the argument itself if it is no pattern
	Entries []share.Entry // with paths below base; nil if the argument is no pattern
	mounted []share.Entry // the mount points below base, with service.ListAll
}

// Remote returns the place of an entry.
func (x *expansion) Remote(e share.Entry) share.Remote {
	at := x.Base
	at.Path = path.Join(at.Path, e.Path)
	return at
}

// Outermost returns the first mount point on the path of an entry, which may be the entry itself, or else the entry.
func (x *expansion) Outermost(e share.Entry) share.Entry {
	for _, m := range x.mounted {
		if e.Path == m.Path || strings.HasPrefix(e.Path, m.Path+"/") {
			return m
		}
	}
	return e
}

// Expand returns the entries that an argument names. A place that exists under the name as it is written is no pattern.
// kinds is service.ListAll if it may name any kind of file, and 0 for those that can be copied.
func (c *Conn) Expand(ctx context.Context, at share.Remote, kinds service.ListFlags) (expansion, error) {
	p, err := share.ParsePattern(at.Path)
	if err != nil && share.IsPattern(at.Path) {
		return expansion{}, exit.Usagef("%s: %w", quote.Text(at.String()), err)
	}
	if !p.Several() && p.Base == PlaceOf(at).Path {
		return expansion{Base: at}, nil
	}
	_, err = c.Client.List(ctx, PlaceOf(at), service.ListItself|kinds, func(share.Entry) error { return nil })
	if err == nil {
		return expansion{Base: at}, nil
	}
	if refused, is := errors.AsType[*service.Refusal](err); !is || refused.Code != wire.AbortSource {
		return expansion{}, err
	}
	x := expansion{Base: at}
	x.Base.Path = p.Base
	if !p.Several() {
		return x, nil
	}
	err = c.match(ctx, &x, p, kinds)
	if err == nil && len(x.Entries) == 0 {
		err = exit.Errorf(exit.Source, "see what dma-copy ls lists there", "nothing matches %s",
			quote.Text(at.String()))
	}
	return x, err
}

// match finds the entries below the base of an expansion that a pattern names.
func (c *Conn) match(ctx context.Context, x *expansion, p share.Pattern, flags service.ListFlags) error {
	if p.Recursive {
		flags |= service.ListRecursive
	}
	bytes := 0
	end, err := c.Client.List(ctx, PlaceOf(x.Base), flags, func(e share.Entry) error {
		matches := e.Path != "" && p.Matches(e.Path, e.Kind == wire.EntryDirectory)
		if !matches && !e.Mounted {
			return nil
		}
		if matches {
			x.Entries = append(x.Entries, e)
		}
		if e.Mounted {
			x.mounted = append(x.mounted, e)
		}
		if bytes += entryMemory + len(e.Path); bytes > maxExpanded {
			return job.NewError(job.ErrLimit, nil, "name fewer entries", "the pattern matches too many entries")
		}
		return nil
	})
	if refused, is := errors.AsType[*service.Refusal](err); is && refused.Code == wire.AbortSource {
		return nil
	}
	return errors.Join(err, Incomplete(end))
}

// Incomplete returns the error for a list that does not have everything, nil for a complete one.
func Incomplete(end service.ListEnd) error {
	if end.Code == 0 {
		return nil
	}
	return exit.Errorf(exit.SomeFailed, "check the permissions there", "not everything could be listed: %s",
		quote.Printable(end.Text))
}
