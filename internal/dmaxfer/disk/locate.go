package disk

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Reasons why Locate does not follow a symlink.
var (
	// ErrDangling is a symlink whose target does not exist.
	ErrDangling = errors.New("dangling symlink")

	// ErrUntrustedLink is a symlink that the kernel does not follow if fs.protected_symlinks is set.
	ErrUntrustedLink = errors.New("symlink of another user in a world-writable sticky directory")
)

// Location is a name in an open directory at which a target exists or is to be created. It is never the name of a
// symlink.
type Location struct {
	Dir   Dir // the caller closes it
	Name  string
	Path  string // for messages: as given, with followed symlinks replaced by their targets
	Found *Info  // the existing file; nil if there is none
}

// Locate returns where the kernel would create or open a file at path for writing. The kernel resolves the directory
// part of the path. Symlinks at its end are followed one by one, each from the open directory that contains it. It
// returns the errors of the FS, among them fs.ErrNotExist for a missing directory, or errors that wrap ErrDangling or
// ErrUntrustedLink.
func Locate(on FS, path string) (*Location, error) {
	l := &Location{Path: path}
	if err := l.moveTo(on.OpenDir, path); err != nil {
		return nil, err
	}
	for range maxLinks {
		if l.Found == nil || l.Found.Mode&fs.ModeSymlink == 0 {
			return l, nil
		}
		if err := l.follow(on.Self()); err != nil {
			_ = l.Dir.Close() // was only read
			return nil, err
		}
	}
	_ = l.Dir.Close() // was only read
	return nil, &fs.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
}

// moveTo opens the directory of a path and looks up its last name in it.
func (l *Location) moveTo(open func(path string) (Dir, error), path string) error {
	parent, name := Split(path)
	if name == "" || name == "." || name == ".." {
		parent, name = path, "." // a directory, if anything
	}
	dir, err := open(parent)
	if err != nil {
		return err
	}
	found, err := dir.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = dir.Close() // was only read
		return err
	}
	if l.Dir != nil {
		_ = l.Dir.Close() // was only read
	}
	l.Dir, l.Name, l.Found = dir, name, nil
	if err == nil {
		l.Found = &found
	}
	return nil
}

// follow moves to the target of a symlink.
func (l *Location) follow(self Self) error {
	link, err := l.Dir.ReadLink(l.Name)
	if err != nil {
		return err
	}
	in, err := l.Dir.Info()
	if err != nil {
		return err
	}
	shown := l.Path
	if !trusted(link.Info, in, self) {
		return &fs.PathError{Op: "follow", Path: shown, Err: ErrUntrustedLink}
	}
	l.Path = resolveLink(shown, link.Text)
	err = l.moveTo(l.Dir.OpenDir, link.Text)
	if errors.Is(err, fs.ErrNotExist) || err == nil && l.Found == nil {
		return &fs.PathError{Op: "follow", Path: shown, Err: ErrDangling}
	}
	return err
}

// trusted reports whether a symlink may be followed by the rule of fs.protected_symlinks, whether or not the kernel
// enforces it.
func trusted(link, in Info, self Self) bool {
	const writableByAll = 0o002
	if in.Mode&fs.ModeSticky == 0 || in.Mode&writableByAll == 0 {
		return true
	}
	return link.UID == self.UID || link.UID == in.UID
}

// resolveLink returns the path of a symlink's target, given the path of the symlink.
func resolveLink(link, text string) string {
	if strings.HasPrefix(text, "/") {
		return text
	}
	return link[:strings.LastIndexByte(link, '/')+1] + text
}

// Split divides a path after its last slash without simplifying it: a component may be a symlink, so "a/../b" is not
// "b". The directory of a path without a slash is ".". The name may be empty, "." or "..".
func Split(path string) (directory, name string) {
	cut := strings.LastIndexByte(path, '/') + 1
	if cut == 0 {
		return ".", path
	}
	return path[:cut], path[cut:]
}

// Join returns the path of a name in a directory without simplifying it. An absolute name is returned as it is.
func Join(directory, name string) string {
	switch {
	case strings.HasPrefix(name, "/"), directory == "", directory == ".":
		return name
	case strings.HasSuffix(directory, "/"):
		return directory + name
	default:
		return directory + "/" + name
	}
}
