package dmaxfer

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// fileSink is a file that gets its name when it is whole.
type fileSink struct {
	*disk.Partial
	plan     negotiate.Plan
	progress *Progress
	length   int64 // of a stream, as far as it has come
}

var _ sink = (*fileSink)(nil)

func openFile(r *receiving) (sink, error) {
	plan, o := r.plan, r.options
	partial, err := disk.OpenPartial(o.files(), r.place.given, disk.Wanted{
		Size: int64(plan.Size), Known: plan.SizeKnown,
		Modified: disk.Timestamp(plan.MTime), Identity: plan.Identity,
		Digest:    byte(plan.Digest),
		Overwrite: plan.Overwrite, Backup: o.Backup, Resume: !o.NoResume, Sparse: plan.Sparse,
		Fill:        r.layout().lanes > 1,
		WriteBehind: plan.Durability != negotiate.DurabilityNone,
		Preserve:    disk.Preserve{Mode: plan.SizeKnown, Times: plan.SizeKnown, Owner: plan.SizeKnown && plan.Owner, Xattrs: plan.XAttr},
	})
	if err != nil {
		return nil, err
	}
	return &fileSink{Partial: partial, plan: plan, progress: r.progress}, nil
}

func (f *fileSink) resumable() int64   { return f.Resumable() }
func (f *fileSink) warnings() []string { return warningsOf(f.Partial) }

// warningsOf is what a user may want to know of a partial file.
func warningsOf(p *disk.Partial) (sentences []string) {
	for _, sentence := range []string{p.Renamed(), p.Discarded()} {
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return sentences
}

func (f *fileSink) allocate(ctx context.Context) error {
	if !f.plan.SizeKnown {
		return nil
	}
	return f.Allocate(ctx, f.progress.worked)
}

func (f *fileSink) concurrent() bool { return f.Concurrent() }

func (f *fileSink) advance(prefix int64) error {
	f.length = prefix
	return f.Advance(prefix)
}

func (f *fileSink) finish(ctx context.Context, sum digest.Sum, attributes []byte) error {
	if f.plan.Readback {
		if err := f.readBack(ctx, sum); err != nil {
			return err
		}
	}
	meta := disk.Metadata{
		Size: f.length, Mode: f.plan.Mode, Modified: disk.Timestamp(f.plan.MTime), UID: f.plan.UID, GID: f.plan.GID,
	}
	var err error
	if meta.Xattrs, err = decodeAttributes(attributes); err != nil {
		return err
	}
	return f.Prepare(ctx, meta, f.durable(), f.progress.worked)
}

// readBack compares what the disk has, as far as the system lets it be asked, with what was to be written.
func (f *fileSink) readBack(ctx context.Context, sum digest.Sum) error {
	if err := f.Flush(ctx, f.progress.worked); err != nil {
		return err
	}
	f.DropCache(0, f.length)
	read, _, err := digest.Of(ctx, sum.Algorithm(), &readingBack{sink: f})
	if err != nil {
		return err
	}
	if read != sum {
		return failure(ErrDigest, nil, "check the disk and the memory of this side",
			"digest mismatch of %s: written %s, read back %s", f.File().Name(), sum, read)
	}
	return nil
}

func (f *fileSink) commit() error                    { return f.Commit(f.durable()) }
func (f *fileSink) durable() disk.Durability         { return disk.Durability(f.plan.Durability) }
func (f *fileSink) durability() negotiate.Durability { return f.plan.Durability }
func (f *fileSink) close() error                     { return nil }

func (f *fileSink) keep() (kept int64, lost string) {
	kept = f.Keep()
	return kept, f.Lost()
}

func (f *fileSink) discard() error {
	f.Discard()
	return nil
}

func (f *fileSink) abandon(keep bool) int64 { return f.Abandon(keep) }

// readingBack is the io.Reader of what a sink has got.
type readingBack struct {
	sink   *fileSink
	offset int64
}

// Read implements io.Reader, and tells how far it is.
func (r *readingBack) Read(p []byte) (int, error) {
	n := min(int64(len(p)), r.sink.length-r.offset)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.sink.ReadAt(p[:n], r.offset); err != nil {
		return 0, err
	}
	r.offset += n
	r.sink.progress.worked(r.sink.length + r.offset) // after what was flushed
	return int(n), nil
}
