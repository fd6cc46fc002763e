package disk

import (
	"context"
	"errors"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// allocationStep is how much is preallocated between two looks at the context.
const allocationStep = 256 << 20

// Allocate gives the file its size, a byte more until Prepare, and, unless it is to be sparse or filled, its blocks, so
// that a full disk is found before the first byte is copied and a mapping of the file cannot fault for want of room. A
// size for which there is clearly no room, and which may be a lie, does not get to fill the disk of others first.
// progress, which may be nil, hears how far it is. ctx ends it with its cause; other errors are an ErrTarget.
func (p *Partial) Allocate(ctx context.Context, progress func(done int64)) error {
	size := p.want.Size
	if p.want.Fill {
		p.writers.beginFilling(p.file, size)
	}
	if !p.want.Sparse {
		if err := p.checkFreeSpace(); err != nil {
			return err
		}
	}
	if err := p.setLength(); err != nil || p.want.Sparse || p.Concurrent() {
		return err
	}
	return inSteps(ctx, size, allocationStep, progress, func(offset, length int64) error {
		if err := p.allocateRange(offset, length); err != nil {
			return p.cannotAllocate(err)
		}
		return nil
	})
}

// stretch gives the file its size and one byte more, and no blocks. No write of this copy reaches that byte, so it is
// gone for good once another process has truncated the file, whatever is written afterwards; Prepare takes it away.
func (p *Partial) setLength() error {
	p.length = p.want.Size + 1
	err := p.file.Truncate(p.length)
	if errors.Is(err, unix.EFBIG) { // the file is as large as one may be
		p.length = p.want.Size
		err = p.file.Truncate(p.length)
	}
	if err != nil {
		return p.cannotAllocate(err)
	}
	return nil
}

// inSteps looks at the context before each step, and tells of each afterwards.
func inSteps(ctx context.Context, size, step int64, progress func(int64), do func(offset, length int64) error) error {
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

// allocateRange writes zeros where the file system cannot do it for us; never over what was resumed.
func (p *Partial) allocateRange(offset, length int64) error {
	err := p.file.Allocate(offset, length)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	start := max(offset, p.resumed)
	return p.fillWithZeros(start, offset+length-start)
}

func (p *Partial) cannotAllocate(err error) error {
	next, size := afterFailedWrite(err), humanize.IBytes(uint64(p.want.Size))
	if free, known := p.file.Free(); known && isFull(err) {
		return failure(ErrNoSpace, err, next, "cannot hold %s: it needs %s and %s are free (%s)",
			p.path, size, humanize.IBytes(free), Reason(err))
	}
	return failure(kindOfWrite(err), err, next, "cannot hold %s of %s: %s", p.path, size, Reason(err))
}
