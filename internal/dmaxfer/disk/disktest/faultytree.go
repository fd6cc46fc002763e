package disktest

import (
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

func (d *faultyDir) OpenBeneath(path string) (disk.Dir, error) {
	return d.on.openDir(d.dir.OpenBeneath, path)
}

func (d *faultyDir) MakeDir(name string, permissions uint32) error {
	return d.on.do("mkdir", name, func() error { return d.dir.MakeDir(name, permissions) })
}

func (d *faultyDir) RemoveDir(name string) error {
	return d.on.do("rmdir", name, func() error { return d.dir.RemoveDir(name) })
}

func (d *faultyDir) Symlink(text, name string) error {
	return d.on.do("symlink", name, func() error { return d.dir.Symlink(text, name) })
}

func (d *faultyDir) LinkTo(name string, in disk.Dir, as string) error {
	return d.on.do("link", as, func() error { return d.dir.LinkTo(name, unwrap(in), as) })
}

// unwrap returns the directory of the file system below, which its methods expect as an argument.
func unwrap(dir disk.Dir) disk.Dir {
	if faulty, is := dir.(*faultyDir); is {
		return faulty.dir
	}
	return dir
}

func (d *faultyDir) SetLinkModified(name string, at disk.Timestamp) error {
	return d.on.do("utimes", name, func() error { return d.dir.SetLinkModified(name, at) })
}

func (d *faultyDir) SetLinkOwner(name string, uid, gid uint32) error {
	return d.on.do("chown", name, func() error { return d.dir.SetLinkOwner(name, uid, gid) })
}

func (d *faultyDir) SetMode(mode uint32) error {
	return d.on.do("chmod", d.path, func() error { return d.dir.SetMode(mode) })
}

func (d *faultyDir) SetOwner(uid, gid uint32) error {
	return d.on.do("chown", d.path, func() error { return d.dir.SetOwner(uid, gid) })
}

func (d *faultyDir) SetModified(at disk.Timestamp) error {
	return d.on.do("utimes", d.path, func() error { return d.dir.SetModified(at) })
}

func (d *faultyDir) Xattrs() ([]disk.Xattr, error) {
	return doing(d.on, "xattrs", d.path, func() ([]disk.Xattr, error) { return d.dir.Xattrs() })
}

func (d *faultyDir) SetXattr(attribute disk.Xattr) error {
	return d.on.do("setxattr", d.path, func() error { return d.dir.SetXattr(attribute) })
}

func (d *faultyDir) RemoveXattr(name string) error {
	return d.on.do("removexattr", d.path, func() error { return d.dir.RemoveXattr(name) })
}

func (d *faultyDir) Lock(own, above disk.LockMode) (locks io.Closer, err error) {
	err = d.on.do("lock directory", d.path, func() (err error) {
		locks, err = d.dir.Lock(own, above)
		return err
	})
	if err != nil && locks != nil {
		_ = locks.Close() // the caller has none
		locks = nil
	}
	return locks, err
}

func (d *faultyDir) IsLocal() bool { return d.dir.IsLocal() }

func (d *faultyDir) CanSyncFS() bool { return d.dir.CanSyncFS() }

func (d *faultyDir) SyncFS() error { return d.on.do("syncfs", d.path, d.dir.SyncFS) }
