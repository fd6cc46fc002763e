package disk

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// flusher makes a tree durable, with one syncfs(2) for each file system if that reports failed writes. Otherwise files
// are flushed one by one when they are staged, and the directories in which names were changed are collected.
type flusher struct {
	// syncing holds a token while anything is flushed: a failure is reported to one of two concurrent calls only. It is
	// a channel because tests in virtual time cannot sleep under a mutex.
	syncing chan struct{}

	mu      sync.Mutex
	systems []*system
	changed map[*Directory]bool // each is held
	failed  error               // of the first flush that failed: it is unknown what was lost
}

// system is a file system of a tree.
type system struct {
	device uint64

	// dir is the handle for SyncFS. It was opened before anything was written. Without it files and directories are
	// flushed one by one.
	dir Dir

	links        sync.Once // hasLinkTimes is set
	hasLinkTimes bool
}

// maxChanged is the number of directories with changed names that are collected before they are flushed.
const maxChanged = 1024

// Sync makes what was received durable, as far as the transfer's durability says so. With DurabilityFull this is all
// that was staged, committed or made before the call, so that one call serves the names of one batch and the content
// of the next. With DurabilityFile it is the content of staged files; names need no Sync then. Otherwise it does
// nothing. It also flushes what other processes have written to the same file system, and fails if that cannot be
// written. After an error nothing since the last Sync is known to be durable, and all further calls fail. It may be
// called concurrently with everything but Close.
func (t *Tree) Sync() error {
	if t.opt.Durability == wire.DurabilityNone {
		return nil
	}
	f := &t.flusher
	f.syncing <- struct{}{}
	defer func() { <-f.syncing }()
	if err := f.syncChanged(); err != nil {
		return err
	}
	for _, s := range f.allSystems() {
		if s.dir == nil {
			continue
		}
		if err := s.dir.SyncFS(); err != nil {
			return f.fail(callFailed("flushing the file system of", t.path, err))
		}
	}
	return nil
}

func (f *flusher) allSystems() []*system {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.systems[:len(f.systems):len(f.systems)] // others may be appended
}

// fail records the first failure and returns it.
func (f *flusher) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return f.failed
}

// syncChanged flushes the collected directories, unless a flush has failed before. The caller holds syncing.
func (f *flusher) syncChanged() error {
	f.mu.Lock()
	changed, err := f.changed, f.failed
	f.changed = nil
	f.mu.Unlock()
	for d := range changed {
		if err == nil {
			if err = d.Do(Dir.Sync); err != nil {
				err = f.fail(d.wrap("flushing", "", err))
			}
		}
		d.Release()
	}
	return err
}

// systemOf returns the file system of a directory, which dir is a handle of.
func (t *Tree) systemOf(dir Dir, device uint64) (*system, error) {
	f := &t.flusher
	f.mu.Lock()
	found := f.known(device)
	f.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made := &system{device: device}
	if t.opt.Durability != wire.DurabilityNone && dir.CanSyncFS() {
		var err error
		if made.dir, err = dir.OpenDir("."); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	if found = f.known(device); found == nil {
		found = made
		f.systems = append(f.systems, made)
	}
	f.mu.Unlock()
	if found != made && made.dir != nil {
		_ = made.dir.Close() // was only read
	}
	return found, nil
}

// known returns the file system of this device if there is one. The caller has locked mu.
func (f *flusher) known(device uint64) *system {
	for _, s := range f.systems {
		if s.device == device {
			return s
		}
	}
	return nil
}

// FlushesFiles reports whether files have to be flushed one by one, because Tree.Sync does not flush their content.
func (d *Directory) FlushesFiles() bool {
	return d.tree.opt.Durability != wire.DurabilityNone && d.system.dir == nil
}

// Flush makes the content of a file durable that the tree has already, if FlushesFiles. Its name is durable after Leave
// or Tree.Sync.
func (d *Directory) Flush(name string) error {
	if !d.FlushesFiles() {
		return nil
	}
	file, err := d.Open(name)
	if err != nil {
		return err
	}
	err = file.Sync()
	_ = file.Close() // was only read
	return d.wrap("flushing", name, err)
}

// flushesNames reports whether the directory has to be flushed by itself after a change of its names or attributes.
func (d *Directory) flushesNames() bool {
	return d.tree.opt.Durability == wire.DurabilityFull && d.system.dir == nil
}

// changed records that names in the directory were changed.
func (d *Directory) changed() error {
	if !d.flushesNames() {
		return nil
	}
	f := &d.tree.flusher
	if count := f.collect(d); count < maxChanged {
		return nil
	}
	f.syncing <- struct{}{}
	defer func() { <-f.syncing }()
	return f.syncChanged()
}

// collect returns the number of collected directories.
func (f *flusher) collect(d *Directory) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.changed[d] {
		if f.changed == nil {
			f.changed = make(map[*Directory]bool)
		}
		d.Hold()
		f.changed[d] = true
	}
	return len(f.changed)
}

// leave calls a function that gives a directory its final mode, and flushes the directory at once, because it may not
// be possible to open it again with that mode. Until then no Sync runs, which could have to open it.
func (f *flusher) leave(d *Directory, dir Dir, finish func() error) error {
	f.syncing <- struct{}{}
	defer func() { <-f.syncing }()
	if err := finish(); err != nil {
		return err
	}
	f.forget(d)
	if err := dir.Sync(); err != nil {
		return f.fail(d.failed("flushing", "", err))
	}
	return nil
}

// forget removes a directory from the collected ones.
func (f *flusher) forget(d *Directory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed[d] {
		delete(f.changed, d)
		d.Release()
	}
}

// close releases what is held without flushing it. It waits for a flush that is running.
func (f *flusher) close() {
	f.syncing <- struct{}{}
	defer func() { <-f.syncing }()
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := range f.changed {
		d.Release()
	}
	f.changed = nil
	for _, s := range f.systems {
		if s.dir != nil {
			_ = s.dir.Close() // was only read
		}
	}
	f.systems = nil
}
