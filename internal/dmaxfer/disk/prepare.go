package disk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Durability is how much of a committed target outlives a crash of the machine, as in the native protocol.
type Durability = negotiate.Durability

// Metadata describes the target apart from its content. Only attributes selected by Wanted.Preserve are used.
type Metadata struct {
	Size     int64  // bytes; for a stream, its final length
	Mode     uint32 // permission bits, without set-id bits
	Modified Timestamp
	UID, GID uint32

	Xattrs iter.Seq[Xattr] // "user." attributes only; nil: none. Those of a directory are set by SetXattrs
}

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
	if err := p.setAttributes(meta); err != nil {
		return err
	}
	if durability != negotiate.DurabilityNone {
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

// setAttributes uses the handle. The owner is set before the mode, because changing it clears mode bits; extended
// attributes before the mode, because it may forbid them; the time last.
func (p *Partial) setAttributes(meta Metadata) error {
	keep, mode := p.want.Preserve, p.modeOf(meta)
	if keep.Owner {
		if err := p.file.SetOwner(meta.UID, meta.GID); err != nil {
			return p.cannotKeep("its owner", nextIfNoOwner, err)
		}
	}
	if keep.Xattrs {
		if err := p.setXattrs(meta.Xattrs); err != nil {
			return err
		}
	}
	if err := p.file.SetMode(mode); err != nil {
		return p.failed("setting the mode of", err)
	}
	if keep.Times {
		if err := p.file.SetModified(meta.Modified); err != nil {
			return p.failed("setting the time of", err)
		}
	}
	return nil
}

// MayPreserve reports whether an extended attribute is copied. Only user attributes are; others grant privileges,
// like set-id bits.
func MayPreserve(attribute string) bool { return strings.HasPrefix(attribute, "user.") }

func (p *Partial) setXattrs(attributes iter.Seq[Xattr]) error {
	if attributes == nil {
		return nil
	}
	for attribute := range attributes {
		if !MayPreserve(attribute.Name) {
			return p.cannotKeep(nameOfXattr(attribute), nextIfNoXattr, errNotUserXattr)
		}
		if err := p.file.SetXattr(attribute); err != nil {
			return p.cannotKeep(nameOfXattr(attribute), nextIfNoXattr, err)
		}
	}
	return nil
}

const nextIfNoXattr = "choose another file system, or leave xattr out of --preserve"

var errNotUserXattr = errors.New("it is not in the user namespace")

// nameOfXattr returns no more of a name than a file system can store: that of a peer may be much longer.
func nameOfXattr(attribute Xattr) string {
	return fmt.Sprintf("its extended attribute %.255q", attribute.Name)
}

func (p *Partial) cannotKeep(what, next string, err error) error {
	return NewError(ErrTarget, err, next, "cannot preserve %s on %s: %s", what, p.path, Reason(err))
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
	if err := inSteps(ctx, size, flushStep, progress, p.flushRange); err != nil {
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
