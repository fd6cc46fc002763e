package connect

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// PlaceOf returns a place as a request names it.
func PlaceOf(r share.Remote) service.Place {
	return service.Place{Share: r.ShareName(), Path: path.Clean("/" + r.Path)[1:]}
}

// maxExpanded bounds the memory of the entries that one pattern names, in bytes.
const maxExpanded = 64 << 20

// entryMemory is about what an entry takes besides its path.
const entryMemory = 200

// Expansion has the entries that an argument names.
type Expansion struct {
	Base    share.Remote  // of the directory that the entries are below; the argument itself if it is no pattern
	Entries []share.Entry // with paths below base; nil if the argument is no pattern
	mounted []share.Entry // the mount points below base, with service.ListAll
}

// Remote returns the place of an entry.
func (x *Expansion) Remote(e share.Entry) share.Remote {
	at := x.Base
	at.Path = path.Join(at.Path, e.Path)
	return at
}

// Outermost returns the first mount point on the path of an entry, which may be the entry itself, or else the entry.
func (x *Expansion) Outermost(e share.Entry) share.Entry {
	for _, m := range x.mounted {
		if e.Path == m.Path || strings.HasPrefix(e.Path, m.Path+"/") {
			return m
		}
	}
	return e
}

// Expand returns the entries that an argument names. A place that exists under the name as it is written is no pattern.
// kinds is service.ListAll if it may name any kind of file, and 0 for those that can be copied.
func (c *Conn) Expand(ctx context.Context, at share.Remote, kinds service.ListFlags) (Expansion, error) {
	p, err := share.ParsePattern(at.Path)
	if err != nil && share.IsPattern(at.Path) {
		return Expansion{}, exit.Usagef("%s: %w", quote.Text(at.String()), err)
	}
	if !p.Several() && p.Base == PlaceOf(at).Path {
		return Expansion{Base: at}, nil
	}
	_, err = c.Client.List(ctx, PlaceOf(at), service.ListItself|kinds, func(share.Entry) error { return nil })
	if err == nil {
		return Expansion{Base: at}, nil
	}
	if refused, is := errors.AsType[*service.Refusal](err); !is || refused.Code != wire.AbortSource {
		return Expansion{}, err
	}
	x := Expansion{Base: at}
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
func (c *Conn) match(ctx context.Context, x *Expansion, p share.Pattern, flags service.ListFlags) error {
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
