package receive

import (
	"context"

	weighted "golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
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

// The numbers of descriptors that a receiver of a tree needs. Besides its files, up to 66 are of the target and the
// directories above it, whose locks it holds or tries to get.
const (
	otherFiles     = 192
	filesOfATarget = 5 // file and its duplicate, journal, directory, and the userfaultfd(2) of a file on tmpfs
	maxTargets     = 64
)

// senderFiles is how many descriptors the sender of a tree needs: for 64 directories, and for some files.
const senderFiles = 96

// fileLimits returns how many files may be open at once that come in chunks, and how many may be staged. Each of the
// latter has a descriptor. local says whether the sender is in this process.
func fileLimits(local bool) (targets, staged int64) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur >= 1<<20 {
		return maxTargets, native.MaxOpen
	}
	left := int64(files.Cur) - otherFiles
	if local {
		left -= senderFiles
	}
	targets = min(max(left/2/filesOfATarget, 1), maxTargets)
	return targets, min(max(left-targets*filesOfATarget, 1), native.MaxOpen)
}
