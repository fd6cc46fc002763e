package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// UnsafeError means that a file or directory is refused because another user could have written or read it.
type UnsafeError struct {
	Path    string
	Problem string // what is wrong, such as "its mode 0644 lets others read it"
	Fix     string // what to do
}

// Error returns the problem and what to do, on one line.
func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s is refused: %s (%s)", quote.Bare(e.Path), e.Problem, e.Fix)
}

// exposure says what other users may do with a file.
type exposure int

const (
	private    exposure = iota // nothing
	unwritable                 // read it
)

// anyUser lets a file belong to every user.
const anyUser = -1

// check returns an UnsafeError unless the file is of a type, belongs to root or to a user, and is as exposed as it may
// be. A file of root is as trustworthy as one of this process, which root could change anyway.
func check(path string, stat *unix.Stat_t, fileType uint32, user int, e exposure) error {
	mode := stat.Mode & 0o7777
	switch {
	case stat.Mode&unix.S_IFMT != fileType:
		return &UnsafeError{path, "it is not a " + typeName(fileType), "remove it"}
	case stat.Uid != 0 && int64(stat.Uid) != int64(user) && user != anyUser:
		return &UnsafeError{path, fmt.Sprintf("it belongs to user %d, neither to root nor to user %d, who runs this",
			stat.Uid, user), fmt.Sprintf("chown %d it after checking its content", user)}
	case e == private && mode&0o077 != 0:
		return &UnsafeError{path, fmt.Sprintf("its mode %04o lets other users use it", mode),
			"chmod 600 it; if others could read it, make a new key"}
	case mode&0o022 != 0:
		return &UnsafeError{path, fmt.Sprintf("its mode %04o lets other users change it", mode),
			"chmod go-w it after checking its content"}
	}
	return nil
}

func typeName(fileType uint32) string {
	if fileType == unix.S_IFDIR {
		return "directory"
	}
	return "regular file"
}

// openDirectory opens a directory that nobody but root and a user can change. at is a directory, or unix.AT_FDCWD. A
// symlink at the end of the name is followed only if follow says so, for a name that the operator chose.
func openDirectory(at int, name, path string, user int, follow bool) (*os.File, error) {
	flags := unix.O_NOFOLLOW
	if follow {
		flags = 0
	}
	return openChecked(at, name, path, flags, unix.S_IFDIR, user, unwritable)
}

// openFile opens a regular file for reading. A symlink is refused.
func openFile(at int, name, path string, user int, e exposure) (*os.File, error) {
	return openChecked(at, name, path, unix.O_NOFOLLOW, unix.S_IFREG, user, e)
}

// openChecked opens what may be of any type at first: a FIFO does not make it wait.
func openChecked(at int, name, path string, flags int, fileType uint32, user int, e exposure) (*os.File, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, &UnsafeError{path, "it is a symlink", "replace it by what it points to"}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err != nil {
		err = &os.PathError{Op: "stat", Path: path, Err: err}
	} else {
		err = check(path, &stat, fileType, user, e)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// readFile reads a regular file of at most limit bytes.
func readFile(at int, name, path string, user int, e exposure, limit int64) ([]byte, error) {
	file, err := openFile(at, name, path, user, e)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		clear(text)
		return nil, fmt.Errorf("%s is larger than %d bytes", quote.Bare(path), limit)
	}
	return text, nil
}

// createFile writes a file of a directory: first under a temporary name, which then becomes the final one. Content and
// name are flushed to disk. Without replace, a name that exists is an error that wraps fs.ErrExist.
func createFile(directory *os.File, name string, content []byte, mode uint32, replace bool) (err error) {
	at, path := int(directory.Fd()), filepath.Join(directory.Name(), name)
	temporary := "." + name + ".new-" + rand.Text()
	if err := writeFile(at, temporary, path, content, mode); err != nil {
		return err
	}
	if replace {
		err = unix.Renameat(at, temporary, at, name)
	} else {
		err = renameIfAbsent(at, temporary, name)
	}
	if err != nil {
		_ = unix.Unlinkat(at, temporary, 0)
	}
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	return directory.Sync()
}

// renameIfAbsent gives a file another name of its directory, unless the name exists. Without hard links it looks
// whether the name is free: nobody but this user and root can create one in the meantime.
func renameIfAbsent(at int, from, to string) error {
	err := unix.Linkat(at, from, at, to, 0)
	if err == nil {
		return unix.Unlinkat(at, from, 0)
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	var stat unix.Stat_t
	switch err := unix.Fstatat(at, to, &stat, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil:
		return unix.EEXIST
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	return unix.Renameat(at, from, at, to)
}

// writeFile makes a new file and flushes its content. It leaves none behind if it fails.
func writeFile(at int, name, path string, content []byte, mode uint32) error {
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, mode)
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(os.FileMode(mode)) // regardless of the umask
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = unix.Unlinkat(at, name, 0)
	}
	return err
}
