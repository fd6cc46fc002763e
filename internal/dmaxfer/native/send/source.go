package send

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/inode"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// source supplies the entries of a transfer, in their order.
type source interface {
	// next returns some entries, or io.EOF after the last. It may take long, and is called by one job.
	next(ctx context.Context) ([]sourceEntry, error)

	// close releases what the source holds.
	close()
}

// sourceEntry is an entry of the transfer, or one that cannot be sent.
type sourceEntry struct {
	*entry
	described wire.Entry
	err       error // not nil: why it cannot be sent
}

// openSource opens what the plan wants sent.
func openSource(t *role.Transfer) (source, error) {
	if t.Params.Plan.Tree {
		return openTreeSource(t)
	}
	return &fileSource{t: t}, nil
}

// fileSource is the one entry of a file or of a stream.
type fileSource struct {
	t     *role.Transfer
	found bool
}

// next implements source.
func (f *fileSource) next(context.Context) ([]sourceEntry, error) {
	if f.found {
		return nil, io.EOF
	}
	f.found = true
	c := f.t.Params.Config
	e := &entry{kind: wire.EntryFile, path: c.File.Path, size: job.Unknown, open: f.openStream}
	described := wire.Entry{Kind: wire.EntryFile, Flags: wire.EntrySizeUnknown}
	if c.File.Source != nil {
		err := job.CheckFileSize(c.File.Path, c.File.Source.Info().Size)
		if err == nil {
			err = f.t.Params.CheckHoles(c.File.Source, c.File.Path)
		}
		if err == nil && f.t.Params.Plan.XAttr {
			e.attributes, err = inode.ReadXattrs(c.File.Source.File(), c.File.Path, f.t.Params.Plan.Privileged)
		}
		if err != nil {
			return nil, err
		}
		e.open = func(context.Context) (*content, error) {
			return &content{source: c.File.Source, close: func() {}}, nil
		}
		e.size = c.File.Source.Info().Size
		described = inode.Describe(c.File.Source.Info(), wire.EntryFile)
	}
	return []sourceEntry{newSourceEntry(e, described)}, nil
}

func (f *fileSource) openStream(ctx context.Context) (*content, error) {
	in, err := f.t.Params.Config.File.OpenInput()
	if err != nil {
		return nil, job.NewError(job.ErrSource, err, "connect a file or a pipe to it",
			"cannot read standard input: %s", disk.Reason(err))
	}
	stream := disk.NewStream(in, f.t.Params.Config.Progress.Touch)
	context.AfterFunc(ctx, stream.Close) // a lane may wait for more of it
	return &content{stream: stream, close: stream.Close}, nil
}

// close implements source. The file is closed by its owner, the stream at the end of the transfer.
func (f *fileSource) close() {}

func newSourceEntry(e *entry, described wire.Entry) sourceEntry {
	if e.kind == wire.EntryFile && !e.packed {
		described.Flags |= wire.EntryChunked
	}
	if len(e.attributes) > 0 {
		described.Flags |= wire.EntryHasMetadata
		if e.kind == wire.EntryFile {
			described.Xattrs = native.SumXattrs(e.attributes)
		}
	}
	return sourceEntry{entry: e, described: described}
}

// sumOf reads a file for its digest. expected is the digest to compare with what the user allows, which may name
// another algorithm.
func sumOf(ctx context.Context, p *role.Params, e *entry) (sum, expected digest.Sum, err error) {
	if !e.acquire() {
		return sum, expected, errDecided
	}
	defer e.release()
	c, err := e.open(ctx)
	if err != nil {
		return sum, expected, err
	}
	defer c.close()
	sum, err = sumOfSource(ctx, p, c.source, p.Plan.SumDigest())
	expected = sum
	if of := p.Config.Expect; err == nil && of != nil && of.Algorithm() != sum.Algorithm() {
		expected, err = sumOfSource(ctx, p, c.source, of.Algorithm())
	}
	if err != nil || p.Plan.AllowChanging {
		return sum, expected, err
	}
	return sum, expected, verifySource(ctx, p, c.source, sum)
}

func sumOfSource(ctx context.Context, p *role.Params, s *disk.Source, by digest.Algorithm) (digest.Sum, error) {
	sum, _, err := digest.Of(ctx, by, job.NewReader(s, s.Info().Size, func(int64) {
		p.Config.Progress.Touch()
	}))
	return sum, err
}

// verifySource returns an error if a source has changed since it was opened. sum is the digest of the bytes that were
// read.
func verifySource(ctx context.Context, p *role.Params, s *disk.Source, sum digest.Sum) error {
	return s.Verify(func() (bool, error) {
		if sum.Algorithm() == digest.None {
			return false, nil
		}
		again, err := sumOfSource(ctx, p, s, sum.Algorithm())
		return again == sum, err
	})
}
