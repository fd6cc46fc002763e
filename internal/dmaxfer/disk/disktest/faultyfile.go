package disktest

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// faultyFile is a file of a Faulty. Operations that cannot fail are the embedded file's.
type faultyFile struct {
	disk.File
	on *Faulty
}

// below returns the file of the file system below, which the methods of its directories expect as an argument.
func (f *faultyFile) below() disk.File { return f.File }

func (f *faultyFile) do(op string, operation func() error) error {
	return f.on.do(op, f.File.Name(), operation)
}

func (f *faultyFile) ReadAt(p []byte, offset int64) (int, error) {
	return f.on.move("read", f.Name(), p, func(p []byte) (int, error) { return f.File.ReadAt(p, offset) })
}

func (f *faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.on.move("write", f.Name(), p, func(p []byte) (int, error) { return f.File.WriteAt(p, offset) })
}

func (f *faultyFile) Read(p []byte) (int, error) {
	return f.on.move("read", f.Name(), p, f.File.Read)
}

func (f *faultyFile) Write(p []byte) (int, error) {
	return f.on.move("write", f.Name(), p, f.File.Write)
}

func (f *faultyFile) Info() (disk.Info, error) {
	return doing(f.on, "stat", f.Name(), func() (disk.Info, error) { return f.File.Info() })
}

func (f *faultyFile) Truncate(size int64) error {
	return f.do("truncate", func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Allocate(offset, length int64) error {
	return f.do("allocate", func() error { return f.File.Allocate(offset, length) })
}

func (f *faultyFile) CopyFrom(from disk.File, offset, length int64) (int64, error) {
	return doing(f.on, "copy", f.Name(), func() (int64, error) { return f.File.CopyFrom(from, offset, length) })
}

func (f *faultyFile) Filler(size int64) (filler disk.Filler, err error) {
	err = f.do("filler", func() (err error) {
		filler, err = f.File.Filler(size)
		return err
	})
	if err != nil && filler != nil {
		_ = filler.Close() // the caller has no handle
		return nil, err
	}
	return filler, err
}

func (f *faultyFile) PunchHole(offset, length int64) error {
	return f.do("punch", func() error { return f.File.PunchHole(offset, length) })
}

func (f *faultyFile) NextData(offset int64) (int64, error) {
	return doing(f.on, "seek", f.Name(), func() (int64, error) { return f.File.NextData(offset) })
}

func (f *faultyFile) NextHole(offset int64) (int64, error) {
	return doing(f.on, "seek", f.Name(), func() (int64, error) { return f.File.NextHole(offset) })
}

func (f *faultyFile) Sync() error { return f.do("sync", f.File.Sync) }

func (f *faultyFile) SyncRange(offset, length int64) error {
	return f.do("flush", func() error { return f.File.SyncRange(offset, length) })
}

func (f *faultyFile) SetMode(permissions uint32) error {
	return f.do("chmod", func() error { return f.File.SetMode(permissions) })
}

func (f *faultyFile) SetOwner(uid, gid uint32) error {
	return f.do("chown", func() error { return f.File.SetOwner(uid, gid) })
}

func (f *faultyFile) SetModified(at disk.Timestamp) error {
	return f.do("utimes", func() error { return f.File.SetModified(at) })
}

func (f *faultyFile) Xattrs() ([]disk.Xattr, error) {
	return doing(f.on, "xattrs", f.Name(), func() ([]disk.Xattr, error) { return f.File.Xattrs() })
}

func (f *faultyFile) SetXattr(attribute disk.Xattr) error {
	return f.do("setxattr", func() error { return f.File.SetXattr(attribute) })
}

func (f *faultyFile) RemoveXattr(name string) error {
	return f.do("removexattr", func() error { return f.File.RemoveXattr(name) })
}

func (f *faultyFile) Lock() error { return f.do("lock", f.File.Lock) }

func (f *faultyFile) Hold() (disk.File, error) {
	var held disk.File
	err := f.do("dup", func() (err error) {
		held, err = f.File.Hold()
		return err
	})
	if err == nil {
		return &heldFile{faultyFile{File: held, on: f.on}}, nil
	}
	if held != nil {
		_ = held.Close() // the caller has no handle
	}
	return nil, err
}

// heldFile closes without a fault: file systems report write errors at the first close.
type heldFile struct{ faultyFile }

func (f *heldFile) Close() error { return f.File.Close() }

func (f *faultyFile) Close() error { return f.on.closing(f.Name(), f.File.Close) }
