package dmaxfer

import (
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// slowFS takes time for what disks take time for.
type slowFS struct {
	disk.FS
	pause func()
}

func (s slowFS) Open(path string) (disk.File, error) {
	file, err := s.FS.Open(path)
	return s.wrap(file, err)
}

func (s slowFS) OpenDir(path string) (disk.Dir, error) {
	dir, err := s.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return slowDir{dir, s}, nil
}

func (s slowFS) wrap(file disk.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return slowFile{file, s.pause}, nil
}

type slowDir struct {
	disk.Dir
	on slowFS
}

func (d slowDir) Open(name string, readOnly bool) (disk.File, error) {
	file, err := d.Dir.Open(name, readOnly)
	return d.on.wrap(file, err)
}

func (d slowDir) Create(name string) (disk.File, error) {
	d.on.pause()
	file, err := d.Dir.Create(name)
	return d.on.wrap(file, err)
}

func (d slowDir) CreateUnnamed(shown string, permissions uint32, early bool) (disk.File, error) {
	d.on.pause()
	file, err := d.Dir.CreateUnnamed(shown, permissions, early)
	return d.on.wrap(file, err)
}

func (d slowDir) GiveName(file disk.File, name string) error {
	if slow, is := file.(slowFile); is {
		file = slow.File
	}
	return d.Dir.GiveName(file, name)
}

func (d slowDir) Rename(from, to string) error {
	d.on.pause()
	return d.Dir.Rename(from, to)
}

func (d slowDir) RenameIfAbsent(from, to string) error {
	d.on.pause()
	return d.Dir.RenameIfAbsent(from, to)
}

func (d slowDir) Sync() error {
	d.on.pause()
	return d.Dir.Sync()
}

type slowFile struct {
	disk.File
	pause func()
}

func (f slowFile) ReadAt(p []byte, offset int64) (int, error) {
	f.pause()
	return f.File.ReadAt(p, offset)
}

func (f slowFile) WriteAt(p []byte, offset int64) (int, error) {
	f.pause()
	return f.File.WriteAt(p, offset)
}

func (f slowFile) Allocate(offset, length int64) error {
	f.pause()
	return f.File.Allocate(offset, length)
}

func (f slowFile) CopyFrom(from disk.File, offset, length int64) (int64, error) {
	f.pause()
	return f.File.CopyFrom(from, offset, length)
}

func (f slowFile) Sync() error {
	f.pause()
	return f.File.Sync()
}

func (f slowFile) SyncRange(offset, length int64) error {
	f.pause()
	return f.File.SyncRange(offset, length)
}

// pipe is a stream over a file. A Read or Write that is held waits for Close.
type pipe struct {
	disk.File
	pause  func()
	held   func() bool
	closed chan struct{}
	once   sync.Once
}

func newPipe(file disk.File, pause func(), held func() bool) *pipe {
	return &pipe{File: file, pause: pause, held: held, closed: make(chan struct{})}
}

func (p *pipe) wait() {
	p.pause()
	if p.held() {
		<-p.closed
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	p.wait()
	return p.File.Read(b)
}

func (p *pipe) Write(b []byte) (int, error) {
	p.wait()
	return p.File.Write(b)
}

func (p *pipe) Close() (err error) {
	p.once.Do(func() {
		err = p.File.Close()
		close(p.closed)
	})
	return err
}

// pauses returns a pause of random length. Safe for concurrent use.
func pauses(random func(limit int64) int64, longest time.Duration) func() {
	return func() {
		if longest > 0 {
			time.Sleep(time.Duration(random(int64(longest))))
		}
	}
}
