package native

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// openSource opens what the plan wants sent.
func openSource(ctx context.Context, t *terms, a *account) (entrySource, error) {
	if t.plan.Tree {
		return openTreeSource(t, a)
	}
	return &fileSource{terms: t, ctx: ctx}, nil
}

// fileSource is the one entry of a file or of a stream.
type fileSource struct {
	terms *terms
	ctx   context.Context // of the transfer: a lane may wait for more of a stream
	found bool
}

// next implements entrySource.
func (f *fileSource) next(context.Context) ([]sourceEntry, error) {
	if f.found {
		return nil, io.EOF
	}
	f.found = true
	c := f.terms.config
	o := &outgoing{kind: negotiate.EntryFile, path: c.File.Path, size: job.Unknown, open: f.openStream}
	e := negotiate.Entry{Kind: negotiate.EntryFile, Flags: negotiate.EntrySizeUnknown}
	if c.File.Source != nil {
		err := checkFile(c.File.Path, c.File.Source.Info().Size)
		if err == nil {
			err = f.terms.checkHoles(c.File.Source, c.File.Path)
		}
		if err != nil {
			return nil, err
		}
		o.open = func() (*content, error) { return &content{source: c.File.Source, close: func() {}}, nil }
		o.size = c.File.Source.Info().Size
		e = describe(c.File.Source.Info(), negotiate.EntryFile)
		if f.terms.plan.XAttr {
			var err error
			if o.attributes, err = readAttributes(c.File.Source.File(), c.File.Path); err != nil {
				return nil, err
			}
		}
	}
	return []sourceEntry{newSourceEntry(o, e)}, nil
}

func (f *fileSource) openStream() (*content, error) {
	in, err := f.terms.config.File.OpenInput()
	if err != nil {
		return nil, job.NewError(job.ErrSource, err, "connect a file or a pipe to it",
			"cannot read standard input: %s", disk.Reason(err))
	}
	stream := disk.NewStream(in, f.terms.config.Progress.Touch)
	context.AfterFunc(f.ctx, stream.Close)
	return &content{stream: stream, close: stream.Close}, nil
}

// close implements entrySource. The file is closed by its owner, the stream at the end of the transfer.
func (f *fileSource) close() {}

// describe returns what is announced of an entry.
func describe(info disk.Info, kind negotiate.EntryKind) negotiate.Entry {
	e := negotiate.Entry{
		Kind: kind, Mode: permissions(info.Mode), MTime: negotiate.Timestamp(info.Modified),
		UID: info.UID, GID: info.GID,
	}
	if kind == negotiate.EntryFile {
		e.Size, e.Identity = uint64(info.Size), info.Fingerprint()
	}
	return e
}

// permissions returns what is kept of a mode. Without its sticky bit a directory that all may write would let anyone
// remove the files of others.
func permissions(mode fs.FileMode) uint32 {
	kept := uint32(mode.Perm())
	if mode.IsDir() && mode&fs.ModeSticky != 0 {
		kept |= unix.S_ISVTX
	}
	return kept
}

func newSourceEntry(o *outgoing, e negotiate.Entry) sourceEntry {
	if o.kind == negotiate.EntryFile && !o.packed {
		e.Flags |= negotiate.EntryChunked
	}
	if len(o.attributes) > 0 {
		e.Flags |= negotiate.EntryHasMetadata
		if o.kind == negotiate.EntryFile {
			e.Xattrs = sumAttributes(o.attributes)
		}
	}
	return sourceEntry{outgoing: o, described: e}
}

// treeSource has the entries of a directory.
type treeSource struct {
	terms   *terms
	walk    *tree.Walk
	omitted int     // depth of a directory that cannot be sent, nor what is below it; 0: none
	unsent  pathSet // files that are not announced, nor hard links to them

	attributes *weighted.Weighted // has maxAttributes permits, one for each byte of those that were passed on
	waiting    *sourceEntry       // for permits; nil: none
}

func openTreeSource(t *terms, a *account) (entrySource, error) {
	c := t.config
	walk, err := tree.Open(c.File.FS, c.File.Name, tree.Options{
		Links: c.Links, HardLinks: t.plan.Links, Xattrs: t.plan.XAttr, Filter: c.Filter, Only: c.FilesFrom,
		MaxEntries: c.MaxEntries, SkipLeftovers: c.SkipLeftovers,
		Warn: func(path, why string) {
			a.skipped(path)
			a.notify(job.Warned{Text: path + " " + why})
		},
	})
	if err != nil {
		return nil, err
	}
	c.Mirror.Sends(walk)
	return &treeSource{
		terms: t, walk: walk, unsent: newPathSet(), attributes: weighted.NewWeighted(maxAttributes),
	}, nil
}

// next implements entrySource. An entry waits until its extended attributes may be held, besides those of the entries
// before it, which next has passed on.
func (s *treeSource) next(ctx context.Context) (entries []sourceEntry, err error) {
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
			return entries, s.terms.overEntries()
		}
		if err != nil {
			return entries, err
		}
		s.terms.config.Progress.Touch()
		if s.omits(&found) {
			continue
		}
		e := s.entry(found)
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
	case negotiate.EntryDirectory:
		if s.omitted == 0 {
			s.omitted = found.Depth
		}
	case negotiate.EntryFile:
		s.unsent.add(found.Path())
	}
}

// entry prepares what the walk has found for being sent.
func (s *treeSource) entry(found tree.Entry) sourceEntry {
	o := &outgoing{kind: found.Kind, path: found.Path(), release: found.Release}
	err := found.Err
	if err == nil && found.Kind == negotiate.EntryFile {
		err = checkFile(o.path, found.Info.Size)
		o.size = found.Info.Size
		o.packed = s.terms.packs(found.Info)
		o.open = func() (*content, error) { return s.openFound(&found) }
	}
	if err == nil && s.terms.plan.XAttr {
		o.attributes, err = s.readAttributes(&found)
	}
	if err == nil && len(found.Link) > s.terms.longestLink(len(found.Name)) {
		err = disk.NewError(disk.ErrSource, nil, "shorten it, or exclude it",
			"%s points to a path of %d bytes, which does not fit into a message", o.path, len(found.Link))
	}
	if err == nil && found.Kind == negotiate.EntryHardLink && s.unsent.has(found.Link) {
		err = disk.NewError(disk.ErrSource, nil, "see the failure of that file",
			"cannot send %s: it is another name of %s, which failed", o.path, found.Link)
	}
	if err != nil {
		s.notSent(&found)
		found.Release()
		o.attributes = nil
		return sourceEntry{outgoing: o, err: err}
	}
	e := describe(found.Info, found.Kind)
	e.Depth, e.Name, e.Link = found.Depth, []byte(found.Name), []byte(found.Link)
	return newSourceEntry(o, e)
}

// openFound opens a file that the walk has found, which must have the announced size.
func (s *treeSource) openFound(found *tree.Entry) (*content, error) {
	source, err := found.Open()
	if err != nil {
		return nil, err
	}
	changed := !source.Info().SameButForChange(found.Info.Identity)
	if s.terms.plan.AllowChanging {
		changed = source.Info().Size != found.Info.Size
	}
	if changed {
		source.Close()
		return nil, disk.NewError(disk.ErrSourceChanged, nil, "copy again when no other process writes to it",
			"%s changed during the copy", found.Path())
	}
	if err := checkEmpty(source, found); err != nil {
		source.Close()
		return nil, err
	}
	return &content{source: source, close: source.Close}, nil
}

// checkEmpty refuses a file that has content although its size is 0, as many have in /proc. One of another size than
// that of its content is noticed when it is read.
func checkEmpty(source *disk.Source, found *tree.Entry) error {
	if found.Info.Size > 0 {
		return nil
	}
	unsized, err := source.Unsized()
	if err == nil && unsized != nil { // which source.Close closes
		err = disk.NewError(disk.ErrSource, nil, "copy it to a regular file first, and send that",
			"%s has content, although its size is 0", found.Path())
	}
	return err
}

// readAttributes reads the extended attributes of an entry.
func (s *treeSource) readAttributes(found *tree.Entry) ([]byte, error) {
	switch found.Kind {
	case negotiate.EntryDirectory:
		attributes := found.Xattrs
		found.Xattrs = nil // which is held until the entry is decided
		return encodeWithin(attributes, found.Path())
	case negotiate.EntryFile:
		c, err := s.openFound(found)
		if err != nil {
			return nil, err
		}
		defer c.close()
		return readAttributes(c.source.File(), found.Path())
	}
	return nil, nil
}

// close implements entrySource.
func (s *treeSource) close() {
	if s.waiting != nil {
		s.waiting.decide()
	}
	s.walk.Close()
}
