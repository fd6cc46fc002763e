package send

import (
	"context"
	"errors"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/inode"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// walkBatch is how many entries the walk of a source passes on at once.
const walkBatch = 64

// treeSource has the entries of a directory.
type treeSource struct {
	t       *role.Transfer
	walk    *tree.Walk
	omitted int          // depth of a directory that cannot be sent, nor what is below it; 0: none
	unsent  tree.PathSet // files that are not announced, nor hard links to them

	attributes *weighted.Weighted // has role.MaxAttributes permits, one for each byte of those that were passed on
	waiting    *sourceEntry       // for permits; nil: none
}

func openTreeSource(t *role.Transfer) (source, error) {
	c, plan := t.Params.Config, &t.Params.Plan
	walk, err := tree.Open(c.File.FS, c.File.Name, tree.Options{
		Links: c.Links, HardLinks: plan.Links, Xattrs: plan.XAttr, Filter: c.Filter, Scope: c.Scope,
		Only: c.FilesFrom, MaxEntries: c.MaxEntries, SkipLeftovers: c.SkipLeftovers,
		Warn: func(path, why string) {
			t.Stats.Skipped(path)
			t.Stats.Notify(job.Warned{Text: path + " " + why})
		},
	})
	if err != nil {
		return nil, err
	}
	c.Mirror.Sends(walk)
	return &treeSource{
		t: t, walk: walk, unsent: tree.NewPathSet(), attributes: weighted.NewWeighted(role.MaxAttributes),
	}, nil
}

// next implements source. An entry waits until its extended attributes may be held in addition to what is held for the
// entries that next has passed on.
func (s *treeSource) next(ctx context.Context) (entries []sourceEntry, err error) {
	c := s.t.Params.Config
	if e := s.waiting; e != nil {
		if s.attributes.Acquire(ctx, int64(len(e.attributes))) != nil {
			return nil, context.Cause(ctx)
		}
		s.waiting = nil
		entries = append(entries, s.holding(*e))
	}
	for len(entries) < walkBatch {
		if ctx.Err() != nil {
			return entries, context.Cause(ctx)
		}
		found, err := s.walk.Next()
		if errors.Is(err, tree.ErrTooManyEntries) {
			return entries, job.OverEntries(c.File.Path, c.MaxEntries)
		}
		if err != nil {
			return entries, err
		}
		c.Progress.Touch()
		if s.omits(&found) {
			continue
		}
		e := s.describe(found)
		if e.err != nil && found.Depth == 0 {
			return entries, e.err
		}
		if !s.attributes.TryAcquire(int64(len(e.attributes))) {
			s.waiting = &e
			return entries, nil
		}
		entries = append(entries, s.holding(e))
	}
	return entries, nil
}

// holding returns an entry that has permits for its extended attributes.
func (s *treeSource) holding(e sourceEntry) sourceEntry {
	if bytes := int64(len(e.attributes)); bytes > 0 {
		e.attributesDropped = func() { s.attributes.Release(bytes) }
	}
	return e
}

// omits releases an entry below a directory that cannot be sent, and reports whether it is one.
func (s *treeSource) omits(found *tree.Entry) bool {
	if s.omitted == 0 || found.Depth <= s.omitted {
		s.omitted = 0
		return false
	}
	s.notSent(found)
	found.Release()
	return true
}

// notSent notes an entry that is not announced.
func (s *treeSource) notSent(found *tree.Entry) {
	switch found.Kind {
	case wire.EntryDirectory:
		if s.omitted == 0 {
			s.omitted = found.Depth
		}
	case wire.EntryFile:
		s.unsent.Add(found.Path())
	}
}

// describe prepares what the walk has found for being sent.
func (s *treeSource) describe(found tree.Entry) sourceEntry {
	e := &entry{kind: found.Kind, path: found.Path(), unhold: found.Release}
	err := found.Err
	if err == nil && found.Kind == wire.EntryFile {
		err = job.CheckFileSize(e.path, found.Info.Size)
		e.size = found.Info.Size
		e.packed = s.t.Params.Packs(found.Info)
		e.open = func(context.Context) (*content, error) {
			source, err := found.OpenAnnounced(s.t.Params.Plan.AllowChanging)
			if err != nil {
				return nil, err
			}
			return &content{source: source, close: source.Close}, nil
		}
	}
	if err == nil && s.t.Params.Plan.XAttr {
		e.attributes, err = s.readAttributes(&found)
	}
	if err == nil && len(found.Link) > s.t.Params.LongestLink(len(found.Name)) {
		err = disk.NewError(disk.ErrSource, nil, "shorten it, or exclude it",
			"%s points to a path of %d bytes, which does not fit into a message", e.path, len(found.Link))
	}
	if err == nil && found.Kind == wire.EntryHardLink && s.unsent.Has(found.Link) {
		err = disk.NewError(disk.ErrSource, nil, "see the failure of that file",
			"cannot send %s: it is another name of %s, which failed", e.path, found.Link)
	}
	if err != nil {
		s.notSent(&found)
		found.Release()
		e.attributes = nil
		return sourceEntry{entry: e, err: err}
	}
	described := inode.Describe(found.Info, found.Kind)
	described.Depth, described.Name, described.Link = found.Depth, []byte(found.Name), []byte(found.Link)
	return newSourceEntry(e, described)
}

// readAttributes reads the extended attributes of an entry.
func (s *treeSource) readAttributes(found *tree.Entry) ([]byte, error) {
	switch found.Kind {
	case wire.EntryDirectory:
		attributes := found.Xattrs
		found.Xattrs = nil // which is held until the entry is decided
		return inode.EncodeXattrs(attributes, found.Path(), s.t.Params.Plan.Privileged)
	case wire.EntryFile:
		source, err := found.OpenAnnounced(s.t.Params.Plan.AllowChanging)
		if err != nil {
			return nil, err
		}
		defer source.Close()
		return inode.ReadXattrs(source.File(), found.Path(), s.t.Params.Plan.Privileged)
	}
	return nil, nil
}

// close implements source.
func (s *treeSource) close() {
	if s.waiting != nil {
		s.waiting.decide()
	}
	s.walk.Close()
}
