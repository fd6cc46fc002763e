package dmaxfer

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

const (
	// targetMode is less the umask what a new target gets when the protocol carries no mode. Until it is whole nobody but
	// its owner may read it.
	targetMode  = 0o644
	privateMode = 0o600

	// maxNameLength is what file systems allow, in bytes.
	maxNameLength = 255

	// allocationStep is how much is preallocated between two looks at the context.
	allocationStep = 256 << 20
)

// target is the file that is received. Until commit it has a name of its own beside the final one, which therefore holds
// the old content or the new, never a part.
type target struct {
	file      *os.File
	temporary string
	final     string
	overwrite bool
	mode      os.FileMode // of the final file
}

// createTarget makes an empty file beside path.
func createTarget(path string, overwrite bool) (*target, error) {
	temporary := filepath.Join(filepath.Dir(path), temporaryName(filepath.Base(path)))
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, targetMode)
	if err != nil {
		return nil, cannotCreate(path, err)
	}
	t := &target{file: file, temporary: temporary, final: path, overwrite: overwrite}
	if err := t.keepPrivate(); err != nil {
		t.abort()
		return nil, cannotCreate(path, err)
	}
	return t, nil
}

// keepPrivate notes the mode that the file is to have in the end, that of the file it replaces or what the umask left.
func (t *target) keepPrivate() error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	t.mode = info.Mode().Perm()
	if replaced, err := os.Stat(t.final); err == nil && t.overwrite {
		t.mode = replaced.Mode().Perm()
	}
	return t.file.Chmod(privateMode)
}

// temporaryName is hidden, tells what it belongs to, and is not taken.
func temporaryName(base string) string {
	suffix := ".dma-copy-" + rand.Text()[:10]
	if room := maxNameLength - len(suffix) - 1; len(base) > room {
		base = base[:room]
	}
	return "." + base + suffix
}

// allocate gives the file its size and its blocks, so that a full disk is found before the first byte is copied and a
// mapping of the file cannot fault for want of room. A size for which there is clearly no room, and which may be a lie,
// does not get to fill the disk of others first.
func (t *target) allocate(ctx context.Context, size int64) error {
	if free, known := freeSpace(t.file); known && uint64(size) > free {
		return t.cannotHold(size, unix.ENOSPC)
	}
	for offset := int64(0); offset < size; offset += allocationStep {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := t.allocateRange(offset, min(allocationStep, size-offset)); err != nil {
			return t.cannotHold(size, err)
		}
	}
	return nil
}

func (t *target) allocateRange(offset, length int64) error {
	for {
		err := unix.Fallocate(int(t.file.Fd()), 0, offset, length)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return t.fillWithZeros(offset, length)
		default:
			return err
		}
	}
}

// fillWithZeros allocates where the file system cannot do it for us.
func (t *target) fillWithZeros(offset, length int64) error {
	zeros := make([]byte, min(length, 1<<20))
	for end := offset + length; offset < end; {
		n, err := t.file.WriteAt(zeros[:min(int64(len(zeros)), end-offset)], offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

func (t *target) cannotHold(size int64, err error) error {
	next := afterFailedWrite(err)
	if free, known := freeSpace(t.file); known && isFull(err) {
		return failure(ErrTarget, err, next, "cannot hold %s: it needs %s and %s are free (%s)",
			t.final, humanize.IBytes(uint64(size)), humanize.IBytes(free), reason(err))
	}
	return failure(ErrTarget, err, next, "cannot hold %s of %s: %s", t.final, humanize.IBytes(uint64(size)), reason(err))
}

func afterFailedWrite(err error) string {
	switch {
	case isFull(err):
		return "make room, or choose another directory"
	case errors.Is(err, unix.EFBIG):
		return "raise the limit (ulimit -f), or choose a file system that holds such files"
	default:
		return "check the disk, and copy again"
	}
}

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func freeSpace(file *os.File) (uint64, bool) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &stat); err != nil || stat.Blocks == 0 {
		return 0, false // a file system without a size does not know
	}
	return stat.Bavail * uint64(stat.Bsize), true
}

// writeAt writes all of buffer at offset.
func (t *target) writeAt(buffer []byte, offset int64) error {
	if _, err := t.file.WriteAt(buffer, offset); err != nil {
		return t.failed("writing", err)
	}
	return nil
}

func (t *target) failed(doing string, err error) error {
	return failure(ErrTarget, err, afterFailedWrite(err), "%s %s failed: %s", doing, t.final, reason(err))
}

// commit makes the file durable and gives it its name. A failed step leaves the old content under the name and nothing
// else. A directory that cannot be flushed is a failure too, although the new name is already there.
func (t *target) commit() error {
	if err := t.file.Chmod(t.mode); err != nil {
		t.abort()
		return t.failed("setting the mode of", err)
	}
	if err := t.file.Sync(); err != nil {
		t.abort()
		return t.failed("flushing", err)
	}
	if err := t.file.Close(); err != nil {
		t.abort()
		return t.failed("closing", err)
	}
	if err := t.rename(); err != nil {
		t.abort()
		return err
	}
	t.temporary = ""
	return t.flushDirectory()
}

func (t *target) rename() error {
	if t.overwrite {
		if err := os.Rename(t.temporary, t.final); err != nil {
			return t.failed("renaming", err)
		}
		return nil
	}
	err := renameIfAbsent(t.temporary, t.final)
	if errors.Is(err, os.ErrExist) {
		return failure(ErrTarget, err, "remove it, or allow its replacement with --overwrite",
			"%s appeared while it was copied", t.final)
	}
	if err != nil {
		return t.failed("renaming", err)
	}
	return nil
}

// renameIfAbsent never replaces anything: by the rename that promises it, or by a hard link where there is none.
func renameIfAbsent(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

func (t *target) flushDirectory() error {
	directory, err := os.Open(filepath.Dir(t.final))
	if err == nil {
		err = errors.Join(directory.Sync(), directory.Close())
	}
	if err != nil {
		return t.failed("flushing the directory of", err)
	}
	return nil
}

// abort removes what there is of the file; after commit it does nothing. The first failure is the one that is reported,
// so its own are not.
func (t *target) abort() {
	if t.temporary == "" {
		return
	}
	_ = t.file.Close()
	_ = os.Remove(t.temporary)
	t.temporary = ""
}
