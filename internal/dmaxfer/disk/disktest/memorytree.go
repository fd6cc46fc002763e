package disktest

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// OpenBeneath implements disk.Dir.
func (d *memoryDir) OpenBeneath(path string) (disk.Dir, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	at, err := d.dir, error(nil)
	if d.closed {
		err = fs.ErrClosed
	}
	for name := range strings.SplitSeq(path, "/") {
		n := at.now[name]
		switch {
		case err != nil:
		case name == "", name == ".", name == "..":
			err = unix.EXDEV
		case n == nil:
			err = unix.ENOENT
		case n.link != "":
			err = unix.ELOOP
		case n.dir == nil:
			err = unix.ENOTDIR
		default:
			at = n.dir
		}
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	d.fs.openDirs++
	return &memoryDir{fs: d.fs, dir: at}, nil
}

// MakeDir implements disk.Dir.
func (d *memoryDir) MakeDir(name string, permissions uint32) error {
	_, unlock, err := d.absent("mkdir", name)
	defer unlock()
	if err != nil {
		return err
	}
	path := filepath.Join(d.dir.path, name)
	made := d.fs.newDirectory(path, fs.FileMode(permissions&^d.fs.self.Umask&0o777))
	made.uid, made.device = d.fs.self.UID, d.dir.device
	d.fs.dirs[path] = made
	d.fs.rename("mkdir "+name, d.dir, map[string]*node{name: d.fs.entryOf(made)})
	return nil
}

// RemoveDir implements disk.Dir.
func (d *memoryDir) RemoveDir(name string) error {
	n, unlock, err := d.lookup("rmdir", name)
	defer unlock()
	switch {
	case err != nil:
	case n.dir == nil:
		err = failed("rmdir", name, unix.ENOTDIR)
	case len(n.dir.now) > 0:
		err = failed("rmdir", name, unix.ENOTEMPTY)
	case !d.mayUnlink(n):
		err = failed("rmdir", name, unix.EPERM)
	}
	if err != nil {
		return err
	}
	n.dir.removed = true
	delete(d.fs.dirs, n.dir.path)
	d.fs.rename("rmdir "+name, d.dir, map[string]*node{name: nil})
	return nil
}

// Symlink implements disk.Dir.
func (d *memoryDir) Symlink(text, name string) error {
	_, unlock, err := d.absent("symlink", name)
	defer unlock()
	if err != nil {
		return err
	}
	made := d.fs.newNode(fs.ModeSymlink | 0o777)
	made.link, made.durable = text, made.now
	made.now.size = int64(len(text))
	d.fs.rename("symlink "+name, d.dir, map[string]*node{name: made})
	return nil
}

// LinkTo implements disk.Dir.
func (d *memoryDir) LinkTo(name string, in disk.Dir, as string) error {
	other, is := in.(*memoryDir)
	if !is {
		return failed("link", as, unix.EXDEV)
	}
	n, unlock, err := d.lookup("link", name)
	defer unlock()
	if err != nil {
		return err
	}
	return d.fs.link(name, n, other.dir, as)
}

// SetLinkModified implements disk.Dir.
func (d *memoryDir) SetLinkModified(name string, at disk.Timestamp) error {
	return d.changeLink("utimes", name, func(_ *node, c *content) error {
		c.modified = d.fs.round(at)
		return nil
	})
}

// SetLinkOwner implements disk.Dir.
func (d *memoryDir) SetLinkOwner(name string, uid, gid uint32) error {
	return d.changeLink("chown", name, func(n *node, c *content) error {
		if n.link == "" {
			return unix.EINVAL
		}
		if d.fs.self.UID != 0 && (uid != c.uid || gid != c.gid) {
			return unix.EPERM
		}
		c.uid, c.gid = uid, gid
		return nil
	})
}

// changeLink changes the attributes of a symlink. They are durable with its name.
func (d *memoryDir) changeLink(op, name string, change func(n *node, c *content) error) error {
	n, unlock, err := d.lookup(op, name)
	defer unlock()
	if err != nil {
		return err
	}
	changed := n.now.clone()
	if err := change(n, changed); err != nil {
		return failed(op, name, err)
	}
	n.now, n.durable, n.changed = changed, changed, d.fs.tick()
	d.fs.step(op + " " + name)
	return nil
}

// changeSelf changes the attributes of the directory. They are durable at once: no promise depends on them.
func (d *memoryDir) changeSelf(op string, change func() error) error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if d.closed {
		return failed(op, d.dir.path, fs.ErrClosed)
	}
	if err := change(); err != nil {
		return failed(op, d.dir.path, err)
	}
	d.fs.step(op + " " + d.dir.path)
	return nil
}

// SetMode implements disk.Dir.
func (d *memoryDir) SetMode(mode uint32) error {
	return d.changeSelf("chmod", func() error {
		d.dir.mode = fs.FileMode(mode & 0o777)
		if mode&unix.S_ISVTX != 0 {
			d.dir.mode |= fs.ModeSticky
		}
		return nil
	})
}

// SetOwner implements disk.Dir.
func (d *memoryDir) SetOwner(uid, gid uint32) error {
	return d.changeSelf("chown", func() error {
		if d.fs.self.UID != 0 && (uid != d.dir.uid || gid != d.dir.gid) {
			return unix.EPERM
		}
		d.dir.uid, d.dir.gid = uid, gid
		return nil
	})
}

// SetModified implements disk.Dir.
func (d *memoryDir) SetModified(at disk.Timestamp) error {
	return d.changeSelf("utimes", func() error {
		d.dir.modified = d.fs.round(at)
		return nil
	})
}

// Xattrs implements disk.Dir.
func (d *memoryDir) Xattrs() (attributes []disk.Xattr, err error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.dir.xattrs)) {
		attributes = append(attributes, disk.Xattr{Name: name, Value: []byte(d.dir.xattrs[name])})
	}
	return attributes, nil
}

// SetXattr implements disk.Dir.
func (d *memoryDir) SetXattr(attribute disk.Xattr) error {
	return d.changeSelf("setxattr", func() error {
		if !strings.Contains(attribute.Name, ".") {
			return unix.EOPNOTSUPP
		}
		d.dir.xattrs[attribute.Name] = string(attribute.Value)
		return nil
	})
}

// RemoveXattr implements disk.Dir.
func (d *memoryDir) RemoveXattr(name string) error {
	return d.changeSelf("removexattr", func() error {
		if _, is := d.dir.xattrs[name]; !is {
			return unix.ENODATA
		}
		delete(d.dir.xattrs, name)
		return nil
	})
}

// Lacking are features that a Memory does not have. Its methods fail with errors.ErrUnsupported then.
type Lacking struct {
	SyncFS  bool // CanSyncFS reports false
	Unnamed bool // files without a name

	Blocks bool          // that have to be reserved: files are compressed
	Modes  bool          // of files: all are 0700
	Unit   time.Duration // times that are set are rounded down to a multiple; 0: they are not
	Local  bool          // true times and link counts: change times differ at each look, and counts are too high
}

// Without removes features.
func (m *Memory) Without(features Lacking) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lacking = features
}

// IsLocal implements disk.Dir.
func (d *memoryDir) IsLocal() bool {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return !d.fs.lacking.Local
}

// round returns what is stored of a time that is set.
func (m *Memory) round(at disk.Timestamp) disk.Timestamp {
	if unit := m.lacking.Unit; unit > 0 {
		rounded := time.Unix(at.Sec, int64(at.Nsec)).UnixNano() / int64(unit) * int64(unit)
		at = disk.Timestamp{Sec: rounded / 1e9, Nsec: uint32(rounded % 1e9)}
	}
	return at
}

// CanSyncFS implements disk.Dir.
func (d *memoryDir) CanSyncFS() bool {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return !d.fs.lacking.SyncFS
}

// SyncFS implements disk.Dir.
func (d *memoryDir) SyncFS() error {
	m := d.fs
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lacking.SyncFS {
		return failed("syncfs", d.dir.path, errors.ErrUnsupported)
	}
	m.syncAll(func(device uint64) bool { return device == d.dir.device })
	m.step("syncfs")
	return nil
}
