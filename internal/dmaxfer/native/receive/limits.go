package receive

import (
	"context"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// limits bound what a receiver holds of entries that are not decided yet. Any goroutine of the transfer uses them.
type limits struct {
	replies *replies
	files   *weighted.Weighted // has a permit for each file of a tree that is open and comes in chunks

	// Each has role.MaxAttributes permits, one for each byte of the extended attributes of needed files, and of other
	// entries that are not planned yet.
	fileAttributes, otherAttributes *weighted.Weighted
}

func newLimits(r *replies, files int64) *limits {
	return &limits{
		replies: r, files: weighted.NewWeighted(files),
		fileAttributes:  weighted.NewWeighted(role.MaxAttributes),
		otherAttributes: weighted.NewWeighted(role.MaxAttributes),
	}
}

// acquire waits for permits that an entry releases when it is decided, and notes them in of, a field of the entry. It
// reports false if the entry has been decided.
func (l *limits) acquire(ctx context.Context,
	e *entry, from *weighted.Weighted, permits int64, of *int64,
) (undecided bool, err error) {
	if !from.TryAcquire(permits) {
		l.replies.requestFlush() // the sender has to know which files to send before
		if from.Acquire(ctx, permits) != nil {
			return false, context.Cause(ctx)
		}
	}
	return e.keepPermits(from, permits, of), nil
}

// release returns what a decided entry has.
func (l *limits) release(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.files.Release(e.permits)
	e.permits = 0
	e.meta.Xattrs, e.attributes = nil, nil // the session keeps the entry for a while
	if e.kind == wire.EntryFile {
		l.fileAttributes.Release(e.attributed)
		e.attributed = 0
	}
}

// holdAttributes prepares an entry for extended attributes of that many bytes. It reports false if they exceed the
// limit. The attributes of a file never do: it has permits for more.
func (l *limits) holdAttributes(e *entry, bytes int64) (held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kind != wire.EntryFile {
		if !l.otherAttributes.TryAcquire(bytes) {
			return false
		}
		e.attributed = bytes
	} else if surplus := e.attributed - bytes; surplus > 0 {
		l.fileAttributes.Release(surplus)
		e.attributed = bytes
	}
	return true
}

// dropAttributes drops the extended attributes of a directory or symlink, which are not held any more.
func (l *limits) dropAttributes(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.meta.Xattrs = nil
	l.otherAttributes.Release(e.attributed)
	e.attributed = 0
}
