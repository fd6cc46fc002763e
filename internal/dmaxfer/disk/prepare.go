package disk

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Durability is how much of a committed target outlives a crash of the machine, as in the native protocol.
type Durability = wire.Durability

// Prepare does everything that can still fail, so that little is left for Commit: it sets size and attributes, and
// flushes the content as durability requires. It fails with ErrChanged if another process has truncated or extended
// the file. progress, which may be nil, is called with the number of bytes flushed. If ctx ends, Prepare returns its
// cause; other errors are an ErrTarget. After a failed flush the content is not trusted and not flushed again, and
// Keep keeps nothing.
func (p *Partial) Prepare(ctx context.Context, meta Metadata, durability Durability, progress func(done int64)) error {
	p.writers.end()
	if err := p.stopFlushing(); err != nil {
		return p.flushFailed(err)
	}
	if err := p.setSize(meta.Size); err != nil {
		return err
	}
	mode := p.modeOf(meta)
	if err := setAttributes(p.file, p.Path, p.want.Preserve, meta, &mode); err != nil {
		return err
	}
	if durability != wire.DurabilityNone {
		if err := p.Flush(ctx, progress); err != nil {
			return err
		}
	}
	return p.seal(meta.Size)
}

// seal records the file's Info; from here on nothing may change it.
func (p *Partial) seal(size int64) (err error) {
	p.sealed, err = p.file.Info()
	if err != nil {
		return p.failed("examining", err)
	}
	if p.sealed.Size != size {
		return p.changed("it has %d bytes and not %d", p.sealed.Size, size)
	}
	return nil
}

// setSize sets the size of the received content, unless the file is shorter or longer than it should be.
func (p *Partial) setSize(size int64) error {
	info, err := p.file.Info()
	if err != nil {
		return p.failed("setting the size of", err)
	}
	wanted := p.length
	if wanted == 0 {
		wanted = p.written.Load()
	}
	if info.Size != wanted { // the message has no sizes, because Allocate has added a byte
		return p.changed("it was truncated or extended")
	}
	if p.flushed != (Identity{}) && !p.unchanged(info.Identity, p.flushed) {
		return p.changed("it was modified after it was flushed")
	}
	if info.Size != size {
		if err := p.file.Truncate(size); err != nil {
			return p.failed("setting the size of", err)
		}
	}
	p.length = size
	p.written.Store(size)
	return nil
}

// modeOf reads the umask only if it is needed, because that takes as long as creating the file.
func (p *Partial) modeOf(meta Metadata) uint32 {
	switch {
	case p.want.Preserve.Mode:
		return meta.Mode
	case p.replaced != nil:
		return *p.replaced
	default:
		return targetMode &^ p.fs.Self().Umask
	}
}

// Flush makes the written content durable, step by step. Prepare calls it too. To read the file back from the disk,
// call it before and write nothing in between, so that Prepare detects changes by other processes.
func (p *Partial) Flush(ctx context.Context, progress func(done int64)) error {
	if err := p.stopFlushing(); err != nil {
		return p.flushFailed(err)
	}
	info, err := p.file.Info()
	if err != nil {
		return p.failed("flushing", err)
	}
	size := info.Size
	if p.length > 0 {
		size = min(size, p.want.Size)
	}
	if err := InSteps(ctx, size, flushStep, progress, p.flushRange); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return p.flushFailed(err)
	}
	if info, err = p.file.Info(); err != nil {
		return p.failed("flushing", err)
	}
	p.flushed = info.Identity
	return nil
}

func (p *Partial) flushRange(offset, length int64) error {
	if err := p.file.SyncRange(offset, length); err != nil {
		return p.flushFailed(err)
	}
	return nil
}

// DropCache makes ReadAt read from the disk after a Flush, as far as the system follows the advice.
func (p *Partial) DropCache(offset, length int64) { p.file.DropCache(offset, length) }
