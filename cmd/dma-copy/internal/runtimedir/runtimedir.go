// Package runtimedir is the directory of a daemon's locks and socket: where it is, who may use it, and which process
// serves a device already. It must not know what a daemon does.
package runtimedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
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
// and outside of one, and that of the system. Another user can make a directory in /tmp, which is then left out.
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
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// Path returns the path as it was given to Open.
func (d *Dir) Path() string { return d.path }

// File returns the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// HeldError says that another daemon has a device or a function already.
type HeldError struct {
	What string // the device, with the representor if there is one
	PID  int    // 0: not known, because the other process has not written it yet
}

var _ exit.Coder = (*HeldError)(nil)

// Error names the device and the process.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another dma-copy serve is running for %s", quote.Bare(e.What))
	}
	return fmt.Sprintf("another dma-copy serve is running for %s: process %d", quote.Bare(e.What), e.PID)
}

// ExitCode implements exit.Coder.
func (e *HeldError) ExitCode() int { return exit.Device }

// Hint implements exit.Coder.
func (e *HeldError) Hint() string {
	return "stop it first, or give it the other shares and reload it with SIGHUP"
}

// Lock is held by the daemon that serves some functions. The kernel releases it when the process ends in any way.
type Lock struct {
	files []*os.File
}

// Lock locks the device for each of the representors, or the device alone if there is none. If another process has
// any of these, nothing stays locked, and the error is a *HeldError. Name device and representors by their PCI
// addresses, because equal ones must have equal names. A file with the id of this process stays behind; it is not
// removed, because another daemon may be about to lock it.
func (d *Dir) Lock(device string, representors ...string) (*Lock, error) {
	names := []string{device}
	if len(representors) > 0 {
		names = nil
		for _, representor := range representors {
			names = append(names, device+" "+representor)
		}
	}
	var lock Lock
	for _, name := range names {
		file, err := d.lockOne(name)
		if err != nil {
			lock.Close()
			return nil, err
		}
		lock.files = append(lock.files, file)
	}
	return &lock, nil
}

func (d *Dir) lockOne(what string) (*os.File, error) {
	path := d.File(fileName(what) + ".lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, unusable(d.path, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = &HeldError{What: what, PID: readPID(file)}
	} else if err == nil {
		err = writePID(file)
	}
	if err != nil {
		_ = file.Close() // nothing of ours is in it
		return nil, err
	}
	return file, nil
}

// fileName returns a name without separators that is different for each text.
func fileName(text string) string {
	var name strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b >= '0' && b <= '9', b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b == ':', b == '.' && name.Len() > 0:
			name.WriteByte(b)
		case b == ' ':
			name.WriteByte('-')
		default:
			fmt.Fprintf(&name, "%%%02x", b)
		}
	}
	return name.String()
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "%d\n", os.Getpid())
	return err
}

// readPID returns 0 if the file does not have the id of a process.
func readPID(file *os.File) int {
	content := make([]byte, 32)
	n, _ := file.ReadAt(content, 0) // io.EOF
	var pid int
	if _, err := fmt.Sscanf(string(content[:n]), "%d\n", &pid); err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Close releases the lock.
func (l *Lock) Close() {
	for _, file := range l.files {
		_ = file.Close() // nothing was written since it was locked
	}
	l.files = nil
}
