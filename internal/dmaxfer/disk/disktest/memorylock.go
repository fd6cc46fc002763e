package disktest

import (
	"io"
	"io/fs"
	"path/filepath"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Lock implements disk.Dir.
func (d *memoryDir) Lock(own, above disk.LockMode) (io.Closer, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if d.closed {
		return nil, failed("lock", d.dir.path, fs.ErrClosed)
	}
	locks := &memoryLocks{fs: d.fs, of: map[*directory]disk.LockMode{d.dir: own}}
	for at := d.dir.path; above != disk.NoLock && at != "/"; {
		at = filepath.Dir(at)
		if dir := d.fs.dirs[at]; dir != nil {
			locks.of[dir] = above
		}
	}
	for dir, mode := range locks.of {
		if dir.excludes(mode) {
			return nil, failed("lock", dir.path, disk.ErrLocked)
		}
	}
	locks.count(1)
	return locks, nil
}

func (d *directory) excludes(mode disk.LockMode) bool {
	if mode == disk.NoLock {
		return false
	}
	first, last := mode.ExcludedBy()
	for each := first; each <= last; each++ {
		if d.locks[each] > 0 {
			return true
		}
	}
	return false
}

// memoryLocks are what one call of Lock has locked.
type memoryLocks struct {
	fs *Memory
	of map[*directory]disk.LockMode
}

func (l *memoryLocks) count(change int) {
	for dir, mode := range l.of {
		dir.locks[mode] += change
	}
	l.fs.openDirs += change
}

// Close implements io.Closer.
func (l *memoryLocks) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	l.count(-1)
	return nil
}
