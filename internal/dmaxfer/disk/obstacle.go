package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Reasons why an entry that exists can be neither replaced nor removed, regardless of the permissions.
var (
	// ErrMountPoint is a file or directory on which something is mounted, such as a file of a container's host.
	ErrMountPoint = errors.New("it is a mount point")

	// ErrImmutable and ErrAppendOnly are attributes that chattr(1) sets.
	ErrImmutable  = errors.New("it is immutable")
	ErrAppendOnly = errors.New("it is append-only")
)

func (d *osDir) Obstacle(name string) error {
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	var stat unix.Statx_t
	if retry(func() error { return unix.Statx(d.fd(), name, flags, 0, &stat) }) != nil {
		return nil
	}
	switch is := stat.Attributes; {
	case is&unix.STATX_ATTR_MOUNT_ROOT != 0 && name != ".":
		return ErrMountPoint
	case is&unix.STATX_ATTR_IMMUTABLE != 0:
		return ErrImmutable
	case is&unix.STATX_ATTR_APPEND != 0:
		return ErrAppendOnly
	}
	return nil
}

// checkObstacle returns an error if an entry, which is shown as path, cannot be replaced.
func checkObstacle(dir Dir, name, path string) error {
	if err := dir.Obstacle(name); err != nil {
		return NewError(ErrTarget, err, afterObstacle(err), "cannot replace %s: %s", path, err)
	}
	return nil
}

// checkDirectory returns an error if nothing in the directory of path can be renamed.
func checkDirectory(dir Dir, path string) error {
	if err := dir.Obstacle("."); err != nil {
		return NewError(ErrTarget, err, afterObstacle(err), "cannot create %s in its directory: %s", path, err)
	}
	return nil
}

// afterObstacle returns the next step.
func afterObstacle(err error) string {
	switch {
	case errors.Is(err, ErrMountPoint), errors.Is(err, unix.EBUSY):
		return "unmount it, or choose another name: what is mounted cannot be replaced"
	case errors.Is(err, ErrImmutable):
		return "remove that attribute (chattr -i), or choose another name"
	default:
		return "remove that attribute (chattr -a), or choose another name"
	}
}
