package disk

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Allocate gives the file its size, plus one byte until Prepare. Unless the target is sparse or filled it also reserves
// all blocks, so that a full disk is found before the first byte is copied. That is left to the writes where the file
// system cannot do it or may need less, unless the file is mapped: a mapping of it must not fail. Allocate refuses a
// size that is larger than the free space before it reserves anything, because the size may be wrong. At last it copies
// the content of the basis. progress, which may be nil, is called with the number of bytes done. If ctx ends, Allocate
// returns its cause; other errors are an ErrTarget.
func (p *Partial) Allocate(ctx context.Context, progress func(done int64)) error {
	size := p.want.Size
	if p.want.Fill && p.basis == nil {
		p.writers.beginFilling(p.file, size)
	}
	if !p.want.Sparse {
		if err := p.checkFreeSpace(); err != nil {
			return err
		}
	}
	if err := p.setLength(); err != nil {
		return err
	}
	if p.reserves() {
		err := InSteps(ctx, size, allocationStep, progress, func(offset, length int64) error {
			if err := p.allocateRange(offset, length); err != nil {
				return p.cannotAllocate(err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return p.copyBasis(ctx, progress)
}

// reserves reports whether blocks are to be reserved.
func (p *Partial) reserves() bool {
	if p.want.Sparse || p.Concurrent() {
		return false
	}
	return p.want.Mapped || !p.file.Compresses()
}

// setLength sets the file's size to one byte more than its content, without blocks. No write of this transfer reaches
// that byte. If another process truncates the file, the byte is lost for good: no later write restores it, and Prepare
// notices. Prepare removes it.
func (p *Partial) setLength() error {
	p.length = p.want.Size + 1
	err := p.file.Truncate(p.length)
	if errors.Is(err, unix.EFBIG) { // size is the maximum of the file system
		p.length = p.want.Size
		err = p.file.Truncate(p.length)
	}
	if err != nil {
		return p.cannotAllocate(err)
	}
	return nil
}

// InSteps calls do for consecutive ranges of at most step bytes. It checks the context before each and calls progress
// after each.
func InSteps(ctx context.Context, size, step int64, progress func(int64), do func(offset, length int64) error) error {
	for offset := int64(0); offset < size; offset += step {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		length := min(step, size-offset)
		if err := do(offset, length); err != nil {
			return err
		}
		if progress != nil {
			progress(offset + length)
		}
	}
	return nil
}

func (p *Partial) checkFreeSpace() error {
	info, err := p.file.Info()
	if err != nil {
		return p.cannotAllocate(err)
	}
	missing := p.want.Size - info.Allocated
	if free, known := p.file.Free(); known && missing > 0 && uint64(missing) > free {
		return p.cannotAllocate(unix.ENOSPC)
	}
	return nil
}

// allocateRange writes zeros to a file that is mapped where the file system cannot reserve blocks.
func (p *Partial) allocateRange(offset, length int64) error {
	err := p.file.Allocate(offset, length)
	switch {
	case !errors.Is(err, errors.ErrUnsupported):
		return err
	case p.want.Mapped:
		return p.fillWithZeros(offset, length)
	}
	return nil
}

func (p *Partial) cannotAllocate(err error) error {
	next, size := afterFailedWrite(err), quantity.Bytes(uint64(p.want.Size))
	if free, known := p.file.Free(); known && isFull(err) {
		return NewError(ErrNoSpace, err, next, "cannot hold %s: it needs %s and %s are free (%s)",
			p.path, size, quantity.Bytes(free), Reason(err))
	}
	return NewError(kindOfWrite(err), err, next, "cannot hold %s of %s: %s", p.path, size, Reason(err))
}
