package disktest

import (
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// maxLinks is the number of symlinks that a path may contain.
const maxLinks = 40

// Symlink creates a symlink of a user in an existing directory.
func (m *Memory) Symlink(text, path string, uid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := m.newNode(fs.ModeSymlink | 0o777)
	made.link, made.now.uid = text, uid
	dir := m.dirs[filepath.Dir(path)]
	dir.now[filepath.Base(path)], dir.durable[filepath.Base(path)] = made, made
}

// SetDirectory changes mode and owner of a directory, initially 0755 and user 0. In a sticky directory names can be
// changed by the owners of their files, of the directory, and by user 0.
func (m *Memory) SetDirectory(path string, mode fs.FileMode, uid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := m.dirs[filepath.Clean(path)]
	dir.mode, dir.uid = mode, uid
}

// walk follows a path from a directory, element by element and through symlinks. It ends in a directory or at a file.
func (m *Memory) walk(from, path string) (directory string, file *node, err error) {
	if path == "" {
		return "", nil, unix.ENOENT
	}
	at, todo := start(from, path), path
	for links := 0; todo != ""; {
		var part string
		part, todo, _ = strings.Cut(todo, "/")
		switch {
		case file != nil:
			return "", nil, unix.ENOTDIR
		case part == "" || part == ".":
			continue
		case part == "..":
			at = filepath.Dir(at)
			continue
		}
		found := m.entry(at, part)
		switch {
		case m.isDirectory(filepath.Join(at, part)):
			at = filepath.Join(at, part)
		case found == nil:
			return "", nil, unix.ENOENT
		case found.link != "":
			if links++; links > maxLinks {
				return "", nil, unix.ELOOP
			}
			at = start(at, found.link)
			todo = found.link + strings.TrimSuffix("/"+todo, "/")
		default:
			file = found
			if strings.HasSuffix(path, "/") && todo == "" {
				return "", nil, unix.ENOTDIR
			}
		}
	}
	return at, file, nil
}

// start returns the directory in which a path begins.
func start(from, path string) string {
	if strings.HasPrefix(path, "/") {
		return "/"
	}
	return from
}

func (m *Memory) entry(directory, name string) *node {
	if dir := m.dirs[directory]; dir != nil {
		return dir.now[name]
	}
	return nil
}

// isDirectory also reports true for parents of directories.
func (m *Memory) isDirectory(path string) bool {
	if path == "/" || m.dirs[path] != nil {
		return true
	}
	for there := range m.dirs {
		if strings.HasPrefix(there, path+"/") {
			return true
		}
	}
	return false
}

// openDir opens a directory by its path from another one.
func (m *Memory) openDir(from, path string) (disk.Dir, error) {
	at, file, err := m.walk(from, path)
	switch {
	case err == nil && file != nil:
		err = unix.ENOTDIR
	case err == nil && m.dirs[at] == nil:
		err = unix.EACCES // it is only the parent of directories
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	m.openDirs++
	return &memoryDir{fs: m, dir: m.dirs[at]}, nil
}

func (d *directory) info() disk.Info {
	return disk.Info{
		Identity: disk.Identity{Device: d.device, Inode: d.number, Modified: d.modified},
		Mode:     fs.ModeDir | d.mode, Links: 2, UID: d.uid, GID: d.gid,
	}
}

// mayUnlink implements the rule of sticky directories.
func (d *memoryDir) mayUnlink(n *node) bool {
	self := d.fs.self.UID
	return d.dir.mode&fs.ModeSticky == 0 || self == 0 || self == d.dir.uid || self == n.now.uid
}

// OpenDir implements disk.Dir.
func (d *memoryDir) OpenDir(path string) (disk.Dir, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return d.fs.openDir(d.dir.path, path)
}

// Info implements disk.Dir.
func (d *memoryDir) Info() (disk.Info, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return d.dir.info(), nil
}

// ReadLink implements disk.Dir.
func (d *memoryDir) ReadLink(name string) (disk.Link, error) {
	n, unlock, err := d.lookup("readlink", name)
	defer unlock()
	if err == nil && n.link == "" {
		err = failed("readlink", name, unix.EINVAL)
	}
	if err != nil {
		return disk.Link{}, err
	}
	return disk.Link{Info: d.fs.info(n), Text: n.link}, nil
}
