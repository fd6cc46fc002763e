package disk

import (
	"context"
	"errors"
	"io"
)

// This file is how a Partial begins with the content of the file that it replaces. The sender's checksums then tell
// which chunks of it are the same, as for the content that an interrupted transfer has left.

// openBasis opens the file that is replaced if it has bytes beyond what is resumed. A file that cannot be read is
// replaced without.
func (p *Partial) openBasis(found *Info) {
	if !p.want.Basis || found == nil || !found.Mode.IsRegular() || min(found.Size, p.want.Size) <= p.resumed {
		return
	}
	file, err := p.dir.Open(p.base, true)
	if err != nil {
		return
	}
	info, err := file.Info()
	if free, known := p.file.Free(); err != nil || !info.Mode.IsRegular() || known && uint64(info.Allocated) > free {
		_ = file.Close() // is not used
		return
	}
	p.basis = file
}

func (p *Partial) closeBasis() {
	if p.basis != nil {
		_ = p.basis.Close() // was only read
		p.basis = nil
	}
}

// copyBasis copies the content of the basis behind what is resumed, except for its holes. An error other than the end
// of the context ends the basis where it occurs: what it does not provide is transferred. progress, which may be nil,
// is called with the number of bytes done, after the bytes of Allocate.
func (p *Partial) copyBasis(ctx context.Context, progress func(done int64)) error {
	if p.basis == nil {
		return nil
	}
	defer p.closeBasis()
	info, err := p.basis.Info()
	if err != nil {
		return nil
	}
	for end := min(info.Size, p.want.Size); p.resumed < end; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		next, err := p.copyBasisStep(end)
		p.resumed = next
		p.extendWritten(next)
		if err != nil {
			break
		}
		if progress != nil {
			progress(p.want.Size + next)
		}
	}
	return nil
}

// copyBasisStep copies the next data of the basis, and returns where it ends. The file has a hole where the basis has.
func (p *Partial) copyBasisStep(end int64) (next int64, err error) {
	data, err := p.basis.NextData(p.resumed)
	switch {
	case errors.Is(err, io.EOF):
		return end, nil
	case err != nil:
		return p.resumed, err
	case data >= end:
		return end, nil
	}
	hole, err := p.basis.NextHole(data)
	if err != nil {
		return data, err
	}
	length := min(hole, end, data+basisStep) - data
	copied, err := p.file.CopyFrom(p.basis, data, length)
	if err == nil && copied < length {
		err = io.ErrUnexpectedEOF // it has been truncated
	}
	return data + copied, err
}
