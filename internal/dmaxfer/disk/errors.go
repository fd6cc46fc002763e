package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The kinds of an Error, found by errors.Is. ErrExists, ErrNoSpace, ErrBusy and ErrChanged are also an ErrTarget.
var (
	// ErrSource is a source that is missing, unreadable or not a regular file.
	ErrSource = exit.NewReason(exit.Source, "", "source")

	// ErrSourceChanged is a source that changed or was removed during the transfer.
	ErrSourceChanged = exit.NewReason(exit.SourceChanged, "", "source changed")

	// ErrTarget is a target that cannot be created, written or made durable.
	ErrTarget = exit.NewReason(exit.Target, "", "target")

	// ErrExists is a target whose name already exists.
	ErrExists = fmt.Errorf("%w exists", ErrTarget)

	// ErrNoSpace is a target without enough space: on the disk, in a quota, or below the limit on a file's size.
	ErrNoSpace = fmt.Errorf("%w has no space", ErrTarget)

	// ErrBusy is a target that another process is receiving.
	ErrBusy = fmt.Errorf("%w is busy", ErrTarget)

	// ErrChanged is a target that another process changed, removed or replaced during the transfer.
	ErrChanged = fmt.Errorf("%w changed", ErrTarget)
)

// ErrLocked is the error of File.Lock if another handle has the lock.
var ErrLocked = errors.New("locked")

// Error is a failure with a file: its cause, and what the user can do about it.
type Error struct {
	Kind  error  // one of the Err variables above
	Cause string // "cannot read /srv/image: permission denied"
	Next  string // "make it readable for this user"
	Err   error  // underlying error; may be nil
}

// Error returns cause and next step.
func (e *Error) Error() string { return e.Cause + ": " + e.Next }

// Unwrap returns kind and underlying error.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// NewError returns an Error. cause is a format; long string arguments, such as paths, are shortened in the middle.
func NewError(kind, err error, next, cause string, args ...any) *Error {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = quote.Bare(text)
		}
	}
	return &Error{Kind: kind, Cause: fmt.Sprintf(cause, args...), Next: next, Err: err}
}

// CannotCreate returns the ErrTarget for a path at which no file can be created.
func CannotCreate(path string, err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EILSEQ) || errors.Is(err, unix.ENAMETOOLONG) {
		return NewError(ErrTarget, err, "choose another name, or another file system",
			"cannot create %s: the file system refuses the name: %s", path, Reason(err))
	}
	return NewError(kindOfWrite(err), err, afterFailedCreate(err), "cannot create %s: %s", path, Reason(err))
}

// afterFailedCreate returns the next step. An empty file needs no space, so ENOSPC means that there are no inodes.
func afterFailedCreate(err error) string {
	switch {
	case errors.Is(err, unix.EDQUOT):
		return "remove files of this user there, or choose another directory"
	case errors.Is(err, unix.ENOSPC):
		return "no inode may be left (df -i): remove files there, or choose another directory"
	case errors.Is(err, unix.EMFILE):
		return "raise the limit on open files (ulimit -n)"
	case errors.Is(err, unix.ENFILE):
		return "raise the system's limit on open files (sysctl fs.file-max)"
	case errors.Is(err, ErrUntrustedLink):
		return "name the symlink's target, or remove the symlink"
	case errors.Is(err, ErrDangling):
		return "fix or remove it"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return "choose another path"
	default:
		return "choose a directory that this user may write to"
	}
}

// callFailed returns the error of a call that was to change a target. doing is "writing", "setting the mode of" and so
// on.
func callFailed(doing, path string, err error) error {
	return NewError(kindOfWrite(err), err, afterFailedWrite(err), "%s %s failed: %s", doing, path, Reason(err))
}

func kindOfWrite(err error) error {
	if isFull(err) || errors.Is(err, unix.EFBIG) {
		return ErrNoSpace
	}
	return ErrTarget
}

func afterFailedWrite(err error) string {
	switch {
	case isFull(err):
		return "free some space, or choose another directory"
	case errors.Is(err, unix.EBUSY):
		return afterObstacle(err)
	case errors.Is(err, unix.EFBIG):
		return "raise the limit (ulimit -f), or choose a file system that holds such files"
	default:
		return "check the disk, and copy again"
	}
}

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// Reason returns the innermost cause of err without operation and paths.
func Reason(err error) string {
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err.Error()
	}
	if link, is := errors.AsType[*os.LinkError](err); is {
		return link.Err.Error()
	}
	return err.Error()
}
