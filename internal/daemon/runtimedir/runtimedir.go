// Package runtimedir is the directory of a daemon's locks and socket: where it is, who may use it, and which process
// serves a device already. It must not know what a daemon does.
package runtimedir

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// System is the runtime directory of a daemon that root or systemd has started.
const System = "/run/dma-copy"

// temporary is where users have their runtime directories outside of a login session. It is not $TMPDIR, which may
// differ between sessions.
var temporary = "/tmp" // but in tests

// outsideSession returns the runtime directory of a user outside of a login session, such as in a job of cron.
func outsideSession(uid int) string { return filepath.Join(temporary, fmt.Sprintf("dma-copy-%d", uid)) }

// Default returns the runtime directory of a daemon: the first one of $RUNTIME_DIRECTORY, which systemd sets, else
// System for root, else dma-copy in $XDG_RUNTIME_DIR, unless that is absent or another user's, which su leaves, else
// /tmp/dma-copy-UID. variable returns a variable of the environment, or "".
func Default(variable func(name string) string, uid int) (string, error) {
	if first, _, _ := strings.Cut(variable("RUNTIME_DIRECTORY"), ":"); first != "" {
		return absolute("RUNTIME_DIRECTORY", first)
	}
	if uid == 0 {
		return System, nil
	}
	if session := variable("XDG_RUNTIME_DIR"); isOwn(session, uid) {
		directory, err := absolute("XDG_RUNTIME_DIR", session)
		return filepath.Join(directory, "dma-copy"), err
	}
	return outsideSession(uid), nil
}

func isOwn(directory string, uid int) bool {
	var stat unix.Stat_t
	return unix.Stat(directory, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR && int(stat.Uid) == uid
}

func absolute(variable, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", exit.Usagef("%s is %s, which is not an absolute path; name a directory with --runtime-dir DIR",
			variable, quote.Text(path))
	}
	return filepath.Clean(path), nil
}

// Candidates returns where a command looks for the daemon, in this order: the directory of this user, in the session
// and outside of one, and the directory of the system. Another user can make a directory in /tmp, which is then left
// out.
func Candidates(variable func(name string) string, uid int) []string {
	var found []string
	if own, err := Default(variable, uid); err == nil && own != System && own != outsideSession(uid) {
		found = append(found, own)
	}
	if own := outsideSession(uid); uid != 0 && check(own, uid) == nil {
		found = append(found, own)
	}
	return append(found, System)
}

// Dir is a runtime directory that only this user and root can change.
type Dir struct {
	path string
}

// Open creates the directory with mode 0700 if it does not exist; its parent must exist. It fails for a symlink, and
// for a directory that another user owns or may write to, who could otherwise replace the locks.
func Open(path string) (*Dir, error) {
	err := os.Mkdir(path, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unusable(path, cause(err))
	}
	if err := check(path, os.Geteuid()); err != nil {
		return nil, unusable(path, err)
	}
	return &Dir{path: path}, nil
}

// check returns why others than a user and root can change a directory.
func check(path string, uid int) error {
	info, err := os.Lstat(path)
	if err != nil {
		return cause(err)
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory")
	case owner != uid && owner != 0:
		return fmt.Errorf("user %d owns it", owner)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %04o)", info.Mode().Perm())
	}
	return nil
}

func unusable(path string, err error) error {
	return exit.Errorf(exit.Usage, "name another one with --runtime-dir DIR", "cannot use the runtime directory %s: %w",
		quote.Bare(path), err)
}

// cause is the error without the path, which the message has already.
func cause(err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err
	}
	return err
}

// Path returns the path as it was given to Open.
func (d *Dir) Path() string { return d.path }

// File returns the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Lock locks a device or a function for this process until the file is closed; the kernel closes it when the process
// ends in any way. Name equal ones equally, by their PCI addresses. A file with the id of this process stays behind; it
// is not removed, because another daemon may be about to lock it.
func (d *Dir) Lock(what string) (*os.File, error) {
	path := d.File(url.PathEscape(what) + ".lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, unusable(d.path, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = exit.Errorf(exit.Device, "stop it first, or give it the other shares and reload it with SIGHUP",
			"another dma-copy serve is running for %s%s", quote.Bare(what), owner(file))
	} else if err == nil {
		err = writePID(file)
	}
	if err != nil {
		_ = file.Close() // nothing of ours is in it
		return nil, err
	}
	return file, nil
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "%d\n", os.Getpid())
	return err
}

// owner names the process whose id is in a file, if it has written it already.
func owner(file *os.File) string {
	content := make([]byte, 32)
	n, _ := file.ReadAt(content, 0) // io.EOF
	var pid uint32
	if _, err := fmt.Sscanf(string(content[:n]), "%d\n", &pid); err != nil {
		return ""
	}
	return fmt.Sprintf(": process %d", pid)
}
