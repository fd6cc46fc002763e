package disktest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// handle is an open file of a Memory.
type handle struct {
	fs       *Memory
	node     *node
	name     string
	readOnly bool
	closed   bool
	offset   int64
	claim    *lockOwner

	unnamed bool // it was made without a name
}

// lockOwner is shared by the duplicates of a handle. They have the lock until the last one is closed.
type lockOwner struct{ holders int }

func (m *Memory) handle(n *node, name string, readOnly bool) *handle {
	m.opened[n]++
	return &handle{fs: m, node: n, name: name, readOnly: readOnly, claim: &lockOwner{holders: 1}}
}

// use executes a call that only reads.
func (h *handle) use(op string, call func(c *content) error) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return failed(op, h.name, fs.ErrClosed)
	}
	return call(h.node.now)
}

// change executes a call that changes the file or its attributes, and records a step.
func (h *handle) change(op string, call func(c *content) error) error {
	return h.use(op, func(c *content) error {
		if h.node.shared {
			h.node.now, h.node.shared = c.clone(), false
		}
		err := call(h.node.now)
		h.node.changed = h.fs.tick()
		h.fs.step(op + " " + h.name)
		if err != nil {
			return failed(op, h.name, err)
		}
		return nil
	})
}

// write executes a change of the content.
func (h *handle) write(op string, call func(c *content) error) error {
	return h.change(op, func(c *content) error {
		if h.readOnly {
			return unix.EBADF
		}
		err := call(c)
		c.modified = h.fs.tick()
		return err
	})
}

// Name implements disk.File.
func (h *handle) Name() string { return h.name }

// OS implements disk.File.
func (h *handle) OS() *os.File { return nil }

// ReadAt implements disk.File.
func (h *handle) ReadAt(p []byte, offset int64) (n int, err error) {
	err = h.use("read", func(c *content) (err error) {
		n, err = c.readAt(p, offset)
		return err
	})
	return n, err
}

// WriteAt implements disk.File. It writes what fits before it fails.
func (h *handle) WriteAt(p []byte, offset int64) (n int, err error) {
	err = h.write("write", func(c *content) error {
		for n < len(p) {
			chunk := p[n:min(n+pageSize-int((offset+int64(n))%pageSize), len(p))]
			if !h.fits(c, offset+int64(n), int64(len(chunk))) {
				return unix.ENOSPC
			}
			c.writeAt(chunk, offset+int64(n))
			n += len(chunk)
		}
		return nil
	})
	return n, err
}

func (h *handle) fits(c *content, offset, length int64) bool {
	return h.fs.capacity == 0 || c.missing(offset, length)*pageSize <= h.fs.freeBytes()
}

// missing returns how many pages of a range are not allocated.
func (c *content) missing(offset, length int64) (pages int64) {
	for i := offset / pageSize; i*pageSize < offset+length; i++ {
		if c.pages[i] == nil {
			pages++
		}
	}
	return pages
}

// Read implements disk.File.
func (h *handle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.offset)
	h.offset += int64(n)
	return n, err
}

// Write implements disk.File.
func (h *handle) Write(p []byte) (int, error) {
	n, err := h.WriteAt(p, h.offset)
	h.offset += int64(n)
	return n, err
}

// Info implements disk.File.
func (h *handle) Info() (info disk.Info, err error) {
	err = h.use("stat", func(*content) error {
		info = h.fs.info(h.node)
		return nil
	})
	return info, err
}

// Truncate implements disk.File.
func (h *handle) Truncate(size int64) error {
	return h.write("truncate", func(c *content) error {
		c.truncate(size)
		return nil
	})
}

// Allocate implements disk.File.
func (h *handle) Allocate(offset, length int64) error {
	return h.write("allocate", func(c *content) error {
		if !h.fits(c, offset, length) {
			return unix.ENOSPC
		}
		c.allocate(offset, length)
		return nil
	})
}

// Compresses implements disk.File.
func (h *handle) Compresses() bool {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return h.fs.lacking.Blocks
}

// Filler implements disk.File after Memory.Fills.
func (h *handle) Filler(int64) (disk.Filler, error) {
	if !h.fs.fills {
		return nil, failed("fill", h.name, errors.ErrUnsupported)
	}
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	h.fs.opened[h.node]++
	return &filler{handle: h}, nil
}

// filler writes whole pages.
type filler struct{ *handle }

// Fill implements disk.Filler.
func (f *filler) Fill(buffer []byte, offset int64) int {
	if offset%pageSize != 0 {
		return 0
	}
	filled := 0
	_ = f.write("fill", func(c *content) error { // the caller writes what does not fit
		for filled+pageSize <= len(buffer) && f.fits(c, offset+int64(filled), pageSize) {
			c.writeAt(buffer[filled:filled+pageSize], offset+int64(filled))
			filled += pageSize
		}
		return nil
	})
	return filled
}

// Close implements disk.Filler.
func (f *filler) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.opened[f.node]--
	return nil
}

// CopyFrom implements disk.File.
func (h *handle) CopyFrom(from disk.File, offset, length int64) (int64, error) {
	buffer := make([]byte, length)
	n, err := from.ReadAt(buffer, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	n, err = h.WriteAt(buffer[:n], offset)
	return int64(n), err
}

// PunchHole implements disk.File.
func (h *handle) PunchHole(offset, length int64) error {
	return h.write("punch", func(c *content) error {
		c.punch(offset, length)
		return nil
	})
}

// NextData implements disk.File.
func (h *handle) NextData(offset int64) (int64, error) {
	return h.next(offset, true)
}

// NextHole implements disk.File.
func (h *handle) NextHole(offset int64) (int64, error) {
	return h.next(offset, false)
}

func (h *handle) next(offset int64, data bool) (at int64, err error) {
	err = h.use("seek", func(c *content) error {
		at = c.next(offset, data)
		if offset >= c.size || data && at == c.size {
			return io.EOF
		}
		return nil
	})
	return at, err
}

// Sync implements disk.File.
func (h *handle) Sync() error {
	return h.use("sync", func(c *content) error {
		h.node.durable, h.node.shared = c, true
		h.fs.step("sync " + h.name)
		return nil
	})
}

// SyncRange implements disk.File. It has no effect, because it promises nothing.
func (h *handle) SyncRange(int64, int64) error {
	return h.use("sync", func(*content) error { return nil })
}

// SetMode implements disk.File.
func (h *handle) SetMode(permissions uint32) error {
	return h.change("chmod", func(c *content) error {
		c.mode = fs.FileMode(permissions & 0o777)
		return nil
	})
}

// SetOwner implements disk.File. Only user 0 may change the owner.
func (h *handle) SetOwner(uid, gid uint32) error {
	return h.change("chown", func(c *content) error {
		if h.fs.self.UID != 0 && (uid != c.uid || gid != c.gid) {
			return unix.EPERM
		}
		c.uid, c.gid = uid, gid
		return nil
	})
}

// SetModified implements disk.File.
func (h *handle) SetModified(at disk.Timestamp) error {
	return h.change("utimes", func(c *content) error {
		c.modified = h.fs.round(at)
		return nil
	})
}

// Xattrs implements disk.File.
func (h *handle) Xattrs() (attributes []disk.Xattr, err error) {
	err = h.use("xattrs", func(c *content) error {
		for _, name := range slices.Sorted(maps.Keys(c.xattrs)) {
			attributes = append(attributes, disk.Xattr{Name: name, Value: []byte(c.xattrs[name])})
		}
		return nil
	})
	return attributes, err
}

// SetXattr implements disk.File.
func (h *handle) SetXattr(attribute disk.Xattr) error {
	return h.change("setxattr", func(c *content) error {
		if !strings.Contains(attribute.Name, ".") {
			return unix.EOPNOTSUPP
		}
		c.xattrs[attribute.Name] = string(attribute.Value)
		return nil
	})
}

// RemoveXattr implements disk.File.
func (h *handle) RemoveXattr(name string) error {
	return h.change("removexattr", func(c *content) error {
		if _, is := c.xattrs[name]; !is {
			return unix.ENODATA
		}
		delete(c.xattrs, name)
		return nil
	})
}

// Lock implements disk.File.
func (h *handle) Lock() error {
	return h.use("lock", func(*content) error {
		if h.node.owner != nil && h.node.owner != h.claim {
			return disk.ErrLocked
		}
		h.node.owner = h.claim
		return nil
	})
}

// GiveName implements disk.Dir.
func (d *memoryDir) GiveName(file disk.File, name string) error {
	h, is := file.(*handle)
	if !is || !h.unnamed {
		return failed("link", name, errors.ErrUnsupported)
	}
	return h.use("link", func(*content) error {
		switch {
		case d.dir.now[name] != nil:
			return failed("link", name, unix.EEXIST)
		case d.dir.removed:
			return failed("link", name, unix.ENOENT)
		case len(name) > 255:
			return failed("link", name, unix.ENAMETOOLONG)
		}
		h.node.changed = h.fs.tick()
		h.fs.rename("name "+name, d.dir, map[string]*node{name: h.node})
		return nil
	})
}

// Hold implements disk.File.
func (h *handle) Hold() (disk.File, error) {
	held := *h
	err := h.use("dup", func(*content) error {
		h.claim.holders++
		h.fs.opened[h.node]++
		return nil
	})
	return &held, err
}

// Free implements disk.File.
func (h *handle) Free() (uint64, bool) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return uint64(h.fs.freeBytes()), h.fs.capacity > 0
}

// DropCache implements disk.File.
func (h *handle) DropCache(int64, int64) {}

// Close implements disk.File.
func (h *handle) Close() error {
	return h.use("close", func(*content) error {
		h.closed = true
		if h.claim.holders--; h.claim.holders == 0 && h.node.owner == h.claim {
			h.node.owner = nil
		}
		if h.fs.opened[h.node]--; h.fs.opened[h.node] == 0 {
			delete(h.fs.opened, h.node)
		}
		return nil
	})
}
