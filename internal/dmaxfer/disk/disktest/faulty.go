package disktest

import (
	"path/filepath"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Plan returns how an operation is to fail, or nil. n is the number of the operation, from 0, over all files and
// directories. op is "create", "write" and so on; name is the last element of the path. Plan is called before the
// operation, for one at a time, and must not use the same Faulty.
type Plan func(n int, op, name string) *Fault

// Fault describes the failure of an operation.
type Fault struct {
	Err error

	// Done executes the operation before it fails: half of a read or write, all of any other operation.
	Done bool

	// Hang, if not nil, delays the operation until the channel is closed. The operation then succeeds and Err is not
	// used.
	Hang <-chan struct{}
}

// FailAt returns a Plan by which operation n fails.
func FailAt(n int, fault Fault) Plan {
	return func(i int, _, _ string) *Fault {
		if i == n {
			return &fault
		}
		return nil
	}
}

// Faulty makes operations of another file system fail. It counts every operation that can fail. An operation that
// closes a handle closes it in any case. It may be used concurrently if the other file system may.
type Faulty struct {
	on   disk.FS
	plan Plan

	mu    sync.Mutex
	trace []string
	fired bool
}

// NewFaulty returns a Faulty for the given file system.
func NewFaulty(on disk.FS, plan Plan) *Faulty { return &Faulty{on: on, plan: plan} }

// Fired reports whether an operation has failed.
func (f *Faulty) Fired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Trace returns the operations so far, in the form "write .file.dma-copy-part".
func (f *Faulty) Trace() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.trace...)
}

func (f *Faulty) fault(op, name string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	base := filepath.Base(name)
	fault := f.plan(len(f.trace), op, base)
	f.trace = append(f.trace, op+" "+base)
	f.fired = f.fired || fault != nil
	return fault
}

// hang returns the fault of an operation, or nil after waiting if the fault is a Hang.
func (f *Faulty) hang(op, name string) *Fault {
	fault := f.fault(op, name)
	if fault == nil || fault.Hang == nil {
		return fault
	}
	<-fault.Hang
	return nil
}

// do executes an operation or returns its fault.
func (f *Faulty) do(op, name string, operation func() error) error {
	fault := f.hang(op, name)
	if fault == nil {
		return operation()
	}
	if fault.Done {
		_ = operation() // fails with the fault in any case
	}
	return failed(op, name, fault.Err)
}

// doing is do for an operation with a result, which is returned also if the operation was executed and fails.
func doing[T any](f *Faulty, op, name string, operation func() (T, error)) (result T, err error) {
	err = f.do(op, name, func() (err error) {
		result, err = operation()
		return err
	})
	return result, err
}

// closing is do for an operation that closes a handle.
func (f *Faulty) closing(name string, end func() error) error {
	fault := f.hang("close", name)
	if err := end(); err != nil || fault == nil {
		return err
	}
	return failed("close", name, fault.Err)
}

// move is do for an operation that reads or writes bytes.
func (f *Faulty) move(op, name string, p []byte, operation func([]byte) (int, error)) (int, error) {
	fault := f.hang(op, name)
	if fault == nil {
		return operation(p)
	}
	n := 0
	if fault.Done {
		n, _ = operation(p[:len(p)/2]) // fails with the fault in any case
	}
	return n, failed(op, name, fault.Err)
}

// Open implements disk.FS.
func (f *Faulty) Open(path string) (disk.File, error) {
	return f.wrap(doing(f, "open", path, func() (disk.File, error) { return f.on.Open(path) }))
}

// wrap closes a file if its opening was executed and fails nevertheless.
func (f *Faulty) wrap(file disk.File, err error) (disk.File, error) {
	if err == nil {
		return &faultyFile{File: file, on: f}, nil
	}
	if file != nil {
		_ = file.Close() // the caller has no handle
	}
	return nil, err
}

// OpenDir implements disk.FS.
func (f *Faulty) OpenDir(path string) (disk.Dir, error) { return f.openDir(f.on.OpenDir, path) }

// openDir closes a directory if its opening was executed and fails nevertheless.
func (f *Faulty) openDir(open func(path string) (disk.Dir, error), path string) (dir disk.Dir, err error) {
	err = f.do("open", path, func() (err error) {
		dir, err = open(path)
		return err
	})
	if err == nil {
		return &faultyDir{dir: dir, on: f, path: path}, nil
	}
	if dir != nil {
		_ = dir.Close() // the caller has no handle
	}
	return nil, err
}

// Stat implements disk.FS.
func (f *Faulty) Stat(path string) (disk.Info, error) {
	return doing(f, "stat", path, func() (disk.Info, error) { return f.on.Stat(path) })
}

// Self implements disk.FS.
func (f *Faulty) Self() disk.Self { return f.on.Self() }

type faultyDir struct {
	dir  disk.Dir
	on   *Faulty
	path string
}

func (d *faultyDir) Open(name string, readOnly bool) (disk.File, error) {
	return d.on.wrap(doing(d.on, "open", name, func() (disk.File, error) { return d.dir.Open(name, readOnly) }))
}

func (d *faultyDir) Create(name string) (disk.File, error) {
	return d.on.wrap(doing(d.on, "create", name, func() (disk.File, error) { return d.dir.Create(name) }))
}

func (d *faultyDir) CreateUnnamed(shown string, permissions uint32, early bool) (disk.File, error) {
	return d.on.wrap(doing(d.on, "create unnamed", shown, func() (disk.File, error) {
		return d.dir.CreateUnnamed(shown, permissions, early)
	}))
}

func (d *faultyDir) GiveName(file disk.File, name string) error {
	if of, is := file.(interface{ below() disk.File }); is {
		file = of.below()
	}
	return d.on.do("name", name, func() error { return d.dir.GiveName(file, name) })
}

func (d *faultyDir) OpenDir(path string) (disk.Dir, error) { return d.on.openDir(d.dir.OpenDir, path) }

func (d *faultyDir) Info() (disk.Info, error) {
	return doing(d.on, "stat", d.path, func() (disk.Info, error) { return d.dir.Info() })
}

func (d *faultyDir) ReadLink(name string) (disk.Link, error) {
	return doing(d.on, "readlink", name, func() (disk.Link, error) { return d.dir.ReadLink(name) })
}

func (d *faultyDir) Stat(name string) (disk.Info, error) {
	return doing(d.on, "stat", name, func() (disk.Info, error) { return d.dir.Stat(name) })
}

func (d *faultyDir) List(after string, limit int) (names []string, more bool, err error) {
	err = d.on.do("list", d.path, func() (err error) {
		names, more, err = d.dir.List(after, limit)
		return err
	})
	return names, more, err
}

func (d *faultyDir) MayCreate() error { return d.on.do("access", d.path, d.dir.MayCreate) }

func (d *faultyDir) Rename(from, to string) error {
	return d.on.do("rename", to, func() error { return d.dir.Rename(from, to) })
}

func (d *faultyDir) RenameIfAbsent(from, to string) error {
	return d.on.do("rename", to, func() error { return d.dir.RenameIfAbsent(from, to) })
}

func (d *faultyDir) Obstacle(name string) error { return d.dir.Obstacle(name) }

func (d *faultyDir) Link(from, to string) error {
	return d.on.do("link", to, func() error { return d.dir.Link(from, to) })
}

func (d *faultyDir) Remove(name string) error {
	return d.on.do("remove", name, func() error { return d.dir.Remove(name) })
}

func (d *faultyDir) Sync() error { return d.on.do("sync", d.path, d.dir.Sync) }

func (d *faultyDir) Close() error { return d.on.closing(d.path, d.dir.Close) }
