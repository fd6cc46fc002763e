package service

import (
	"path"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// keptDirectory is the directory of the last copy, for the requests after it that are about what was copied. After a
// push it is open and locked.
type keptDirectory struct {
	mirror *tree.Mirror
	place  protocol.Place
	using  sync.RWMutex // is held by requests that use the directory, and may hang
}

// keep remembers the directory of a copy that has come to its end, if the requests after it will be about that.
func (c *connection) keep(side *copySide) {
	if side.options.Mirror != nil {
		c.kept = &keptDirectory{
			mirror: side.options.Mirror, place: protocol.Place{Share: side.Name, Path: side.accepted.Path},
		}
		side.options.Mirror = nil
	}
}

// forget closes what the last copy has kept. It does not wait for long: the file system may hang.
func (c *connection) forget() {
	kept := c.kept
	if kept == nil {
		return
	}
	c.kept = nil
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var err error
		defer func() { c.server.bug(c.session(), err) }()
		defer job.Recover(&err)
		kept.using.Lock()
		defer kept.using.Unlock()
		c.closeMirror(kept.mirror)
	}()
	select {
	case <-closed:
	case <-time.After(job.ReleaseTime):
	}
}

// closeMirror closes the target of a copy.
func (c *connection) closeMirror(m *tree.Mirror) {
	if err := m.Close(); err != nil {
		c.log.Warn().Err(err).Msg("could not close the directory of a copy")
	}
}

// usesKept reports whether a request is about what the last copy has kept.
func usesKept(step protocol.Step) bool {
	switch step.Event {
	case protocol.ListRequested:
		return step.List.Flags.Has(protocol.ListKept)
	case protocol.RemoveRequested:
		return step.Remove.Kept
	}
	return false
}

// recordPlace sets the path of a request, which may be below what the last copy has kept.
func (c *connection) recordPlace(record *Record, at protocol.Place, kept bool) {
	record.Share, record.Path = at.Share, at.Path
	if kept && c.kept != nil {
		record.Path = path.Join(c.kept.place.Path, at.Path)
	}
}

// use begins a request at a path below the directory, if the directory's own path in the share still leads to it, and
// returns where that is; using is to be unlocked then. After a pull the directory is not open, so it is in the share.
func (k *keptDirectory) use(in *share.Opened, below string) (*share.Opened, string, error) {
	if k == nil || k.place.Share != in.Name {
		return nil, "", job.NewError(ErrRefused, nil, "copy a directory first",
			"the last copy has kept no directory of share %s", quote.Text(in.Name))
	}
	k.using.RLock()
	if err := k.mirror.Check(in.FS(), localName(k.place.Path)); err != nil {
		k.using.RUnlock()
		return nil, "", err
	}
	if target := k.mirror.Target(); target != nil {
		return in.At(target), below, nil
	}
	return in, path.Join(k.place.Path, below), nil
}
