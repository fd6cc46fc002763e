package disktest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Memory is a file system without I/O. Content and names are volatile until a Sync of the file and of the directory,
// which matters only to Crashes. It may be used concurrently.
type Memory struct {
	mu       sync.Mutex
	self     disk.Self
	dirs     map[string]*directory
	capacity int64 // bytes; 0: unlimited
	fills    bool  // files have a Filler
	inodes   uint64
	clock    disk.Timestamp
	opened   map[*node]int // number of handles
	openDirs int
	lacking  Lacking
	everMade []*directory

	recording bool
	pending   []change // changes of names since their directory's last Sync
	snapshots []snapshot
}

// directory has its names in two versions: the current one, and the one after a loss of power.
type directory struct {
	path         string
	mode         fs.FileMode // permission bits and sticky bit
	uid, gid     uint32
	modified     disk.Timestamp
	xattrs       map[string]string
	number       uint64
	device       uint64 // of its file system; 1 unless Mount has changed it
	root         bool   // it was there from the beginning
	removed      bool
	locks        [disk.LockDeleteBelow + 1]int // how many there are of each mode
	now, durable map[string]*node
}

// node is a file, or the entry of a directory in its parent. now is replaced and not modified while it is shared.
type node struct {
	number       uint64
	link         string     // target of a symlink; empty for other files
	dir          *directory // nil: a file or symlink
	device       uint64     // of the directory in which it was created
	now, durable *content
	shared       bool // now is shared with a snapshot
	changed      disk.Timestamp
	owner        *lockOwner // of the lock
}

// NewMemory returns a file system with an empty directory at each path.
func NewMemory(directories ...string) *Memory {
	m := &Memory{
		self: disk.Self{UID: 1000, Umask: 0o022}, dirs: make(map[string]*directory), opened: make(map[*node]int),
	}
	for _, path := range directories {
		path = filepath.Clean(path)
		m.dirs[path] = m.newDirectory(path, 0o755)
		m.dirs[path].root = true
	}
	for path, dir := range m.dirs {
		if parent := m.dirs[filepath.Dir(path)]; parent != nil && parent != dir {
			entry := m.entryOf(dir)
			parent.now[filepath.Base(path)], parent.durable[filepath.Base(path)] = entry, entry
		}
	}
	return m
}

func (m *Memory) newDirectory(path string, mode fs.FileMode) *directory {
	m.inodes++
	made := &directory{
		path: path, mode: mode, number: m.inodes, device: 1, modified: m.tick(),
		now: make(map[string]*node), durable: make(map[string]*node), xattrs: make(map[string]string),
	}
	m.everMade = append(m.everMade, made)
	return made
}

// entryOf returns the entry of a directory in its parent.
func (m *Memory) entryOf(dir *directory) *node {
	made := m.newNode(fs.ModeDir)
	made.dir, made.durable = dir, made.now
	return made
}

// SetSelf changes the identity of the process.
func (m *Memory) SetSelf(self disk.Self) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self = self
}

// Mount puts a directory on a file system of its own, with all that is created there later.
func (m *Memory) Mount(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := m.dirs[filepath.Clean(path)]
	dir.device = dir.mountedDevice()
}

// mountedDevice returns the device of a directory on which a file system is mounted.
func (d *directory) mountedDevice() uint64 { return d.number + 1 }

// Limit sets the capacity of the file system in bytes.
func (m *Memory) Limit(capacity int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = capacity
}

// Fills gives files a Filler, as on tmpfs.
func (m *Memory) Fills() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fills = true
}

// Put creates or replaces a file whose content and name are durable.
func (m *Memory) Put(path, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := m.dirs[filepath.Dir(path)], filepath.Base(path)
	made := m.newNode(0o644)
	made.now.writeAt([]byte(text), 0)
	made.durable = made.now.clone()
	dir.now[base], dir.durable[base] = made, made
}

// Special creates a file of another type, such as a FIFO, in an existing directory.
func (m *Memory) Special(path string, kind fs.FileMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := m.newNode(kind | 0o600)
	dir := m.dirs[filepath.Dir(path)]
	dir.now[filepath.Base(path)], dir.durable[filepath.Base(path)] = made, made
}

// Write changes a file like another process, regardless of its mode.
func (m *Memory) Write(path, text string, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	n.now, n.shared = n.now.clone(), false
	n.now.writeAt([]byte(text), offset)
	n.changed = m.tick()
	n.now.modified = n.changed
}

// Link gives a file another name, in its directory or another one.
func (m *Memory) Link(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(from)
	n.changed = m.tick()
	m.dirs[filepath.Dir(to)].now[filepath.Base(to)] = n
}

// Get returns a file's content; found is false if it does not exist.
func (m *Memory) Get(path string) (text string, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil {
		return "", false
	}
	p := make([]byte, n.now.size)
	_, _ = n.now.readAt(p, 0) // p has the size of the content
	return string(p), true
}

// Handles returns the number of open files and directories.
func (m *Memory) Handles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.openDirs
	for _, n := range m.opened {
		total += n
	}
	return total
}

func (m *Memory) find(path string) *node {
	_, n, err := m.walk("/", path)
	if err != nil {
		return nil
	}
	return n
}

func (m *Memory) newNode(mode fs.FileMode) *node {
	m.inodes++
	empty := &content{pages: make(map[int64]*page), xattrs: make(map[string]string), mode: mode, uid: m.self.UID}
	made := &node{number: m.inodes, now: empty, durable: empty.clone(), changed: m.tick()}
	made.now.modified = made.changed
	return made
}

// tick returns the current time, but never the same twice.
func (m *Memory) tick() disk.Timestamp {
	now := time.Now()
	at := disk.Timestamp{Sec: now.Unix(), Nsec: uint32(now.Nanosecond())}
	if at.Sec < m.clock.Sec || at.Sec == m.clock.Sec && at.Nsec <= m.clock.Nsec {
		at = disk.Timestamp{Sec: m.clock.Sec, Nsec: m.clock.Nsec + 1}
		if at.Nsec == 1e9 {
			at = disk.Timestamp{Sec: at.Sec + 1}
		}
	}
	m.clock = at
	return at
}

// freeBytes returns the unused capacity.
func (m *Memory) freeBytes() int64 {
	live := make(map[*node]bool)
	for _, dir := range m.dirs {
		for _, n := range dir.now {
			live[n] = true
		}
	}
	for n := range m.opened {
		live[n] = true
	}
	used := int64(0)
	for n := range live {
		used += int64(len(n.now.pages)) * pageSize
	}
	return max(m.capacity-used, 0)
}

func (m *Memory) info(n *node) disk.Info {
	if n.dir != nil {
		return n.dir.info()
	}
	links := uint64(0)
	for _, dir := range m.dirs {
		for _, other := range dir.now {
			if other == n {
				links++
			}
		}
	}
	mode, changed := n.now.mode, n.changed
	if m.lacking.Modes && mode.IsRegular() {
		mode = 0o700
	}
	if m.lacking.Local {
		links, changed = links+1, m.tick()
	}
	return disk.Info{
		Identity: disk.Identity{
			Device: 1, Inode: n.number, Size: n.now.size, Modified: n.now.modified, Changed: changed,
		},
		Mode: mode, Links: links, UID: n.now.uid, GID: n.now.gid,
		Allocated: int64(len(n.now.pages)) * pageSize,
	}
}

// Open implements disk.FS.
func (m *Memory) Open(path string) (disk.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, n, err := m.walk("/", path)
	if err == nil && n == nil {
		err = unix.EISDIR
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	return m.handle(n, path, true), nil
}

// OpenDir implements disk.FS.
func (m *Memory) OpenDir(path string) (disk.Dir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.openDir("/", path)
}

// Stat implements disk.FS.
func (m *Memory) Stat(path string) (disk.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, n, err := m.walk("/", path)
	switch {
	case err != nil:
		return disk.Info{}, failed("stat", path, err)
	case n != nil:
		return m.info(n), nil
	case m.dirs[at] != nil:
		return m.dirs[at].info(), nil
	default:
		return disk.Info{Mode: fs.ModeDir | 0o755, Links: 2}, nil
	}
}

// Self implements disk.FS.
func (m *Memory) Self() disk.Self {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

func failed(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

// memoryDir is a handle of a directory.
type memoryDir struct {
	fs     *Memory
	dir    *directory
	closed bool
}

// lookup returns with the lock held; the caller must call unlock.
func (d *memoryDir) lookup(op, name string) (n *node, unlock func(), err error) {
	d.fs.mu.Lock()
	n = d.dir.now[name]
	switch {
	case d.closed:
		err = failed(op, name, fs.ErrClosed)
	case len(name) > 255:
		err = failed(op, name, unix.ENAMETOOLONG)
	case n == nil:
		err = failed(op, name, unix.ENOENT)
	}
	return n, d.fs.mu.Unlock, err
}

func (d *memoryDir) path(name string) string { return disk.Join(d.dir.path, name) }

// Open implements disk.Dir.
func (d *memoryDir) Open(name string, readOnly bool) (disk.File, error) {
	n, unlock, err := d.lookup("open", name)
	defer unlock()
	if err != nil {
		return nil, err
	}
	switch {
	case n.link != "":
		return nil, failed("open", name, unix.ELOOP)
	case n.dir != nil:
		return nil, failed("open", name, unix.EISDIR)
	}
	if d.fs.self.UID != 0 && (n.now.uid != d.fs.self.UID || n.now.mode&0o200 == 0 && !readOnly) {
		return nil, failed("open", name, unix.EACCES)
	}
	return d.fs.handle(n, d.path(name), readOnly), nil
}

// Create implements disk.Dir.
func (d *memoryDir) Create(name string) (disk.File, error) {
	_, unlock, err := d.absent("create", name)
	defer unlock()
	if err != nil {
		return nil, err
	}
	made := d.fs.newNode(0o600)
	made.device = d.dir.device
	d.fs.rename("create "+name, d.dir, map[string]*node{name: made})
	return d.fs.handle(made, d.path(name), false), nil
}

// absent is lookup for a name that is about to be created.
func (d *memoryDir) absent(op, name string) (n *node, unlock func(), err error) {
	n, unlock, err = d.lookup(op, name)
	switch {
	case n != nil:
		err = failed(op, name, unix.EEXIST)
	case d.dir.removed:
		err = failed(op, name, unix.ENOENT)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return n, unlock, err
}

// CreateUnnamed implements disk.Dir.
func (d *memoryDir) CreateUnnamed(shown string, permissions uint32, _ bool) (disk.File, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	switch {
	case d.closed:
		return nil, failed("create", shown, fs.ErrClosed)
	case d.fs.lacking.Unnamed:
		return nil, failed("create", shown, errors.ErrUnsupported)
	}
	made := d.fs.handle(d.fs.newNode(fs.FileMode(permissions&0o777)), d.path(shown), false)
	made.unnamed, made.node.device = true, d.dir.device
	return made, nil
}

// Stat implements disk.Dir.
func (d *memoryDir) Stat(name string) (disk.Info, error) {
	if name == "." {
		return d.Info()
	}
	n, unlock, err := d.lookup("stat", name)
	defer unlock()
	if err != nil {
		return disk.Info{}, err
	}
	return d.fs.info(n), nil
}

// List implements disk.Dir.
func (d *memoryDir) List(after string, limit int) (names []string, more bool, err error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	all := func() ([]string, error) { return slices.Collect(maps.Keys(d.dir.now)), io.EOF }
	return disk.ListNames(all, after, limit)
}

// MayCreate implements disk.Dir.
func (d *memoryDir) MayCreate() error { return nil }

// Rename implements disk.Dir.
func (d *memoryDir) Rename(from, to string) error {
	n, unlock, err := d.lookup("rename", from)
	defer unlock()
	if err != nil || n == d.dir.now[to] {
		return err
	}
	old := d.dir.now[to]
	switch {
	case len(to) > 255:
		return failed("rename", to, unix.ENAMETOOLONG)
	case n.dir != nil:
		return failed("rename", to, unix.EOPNOTSUPP) // paths of directories are fixed
	case !d.mayUnlink(n) || old != nil && !d.mayUnlink(old):
		return failed("rename", to, unix.EPERM)
	case old != nil && old.dir != nil:
		return failed("rename", to, unix.EISDIR)
	}
	d.fs.rename("rename "+from+" "+to, d.dir, map[string]*node{from: nil, to: n})
	return nil
}

// RenameIfAbsent implements disk.Dir.
func (d *memoryDir) RenameIfAbsent(from, to string) error {
	n, unlock, err := d.lookup("rename", from)
	defer unlock()
	switch {
	case err == nil && d.dir.now[to] != nil:
		err = failed("rename", to, unix.EEXIST)
	case err == nil && len(to) > 255:
		err = failed("rename", to, unix.ENAMETOOLONG)
	}
	if err != nil {
		return err
	}
	if n.dir != nil {
		d.fs.move(n.dir.path, filepath.Join(d.dir.path, to))
	}
	d.fs.rename("rename "+from+" "+to, d.dir, map[string]*node{from: nil, to: n})
	return nil
}

// move gives a directory that is renamed, and those below it, their new paths.
func (m *Memory) move(from, to string) {
	for path, dir := range maps.Clone(m.dirs) {
		if below, is := strings.CutPrefix(path, from); is && (below == "" || below[0] == '/') {
			delete(m.dirs, path)
			dir.path = to + below
			m.dirs[dir.path] = dir
		}
	}
}

// Obstacle implements disk.Dir. Only a directory of Mount is one.
func (d *memoryDir) Obstacle(name string) error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if n := d.dir.now[name]; n != nil && n.dir != nil && n.dir.device == n.dir.mountedDevice() {
		return disk.ErrMountPoint
	}
	return nil
}

// Link implements disk.Dir.
func (d *memoryDir) Link(from, to string) error {
	n, unlock, err := d.lookup("link", from)
	defer unlock()
	if err != nil {
		return err
	}
	return d.fs.link(from, n, d.dir, to)
}

// link gives a file another name.
func (m *Memory) link(from string, n *node, in *directory, to string) error {
	switch {
	case in.now[to] != nil:
		return failed("link", to, unix.EEXIST)
	case n.dir != nil:
		return failed("link", to, unix.EPERM)
	case len(to) > 255:
		return failed("link", to, unix.ENAMETOOLONG)
	case in.removed:
		return failed("link", to, unix.ENOENT)
	}
	n.changed = m.tick()
	m.rename("link "+from+" "+to, in, map[string]*node{to: n})
	return nil
}

// Remove implements disk.Dir.
func (d *memoryDir) Remove(name string) error {
	n, unlock, err := d.lookup("remove", name)
	defer unlock()
	switch {
	case err == nil && n.dir != nil:
		err = failed("remove", name, unix.EISDIR)
	case err == nil && !d.mayUnlink(n):
		err = failed("remove", name, unix.EPERM)
	}
	if err == nil {
		d.fs.rename("remove "+name, d.dir, map[string]*node{name: nil})
	}
	return err
}

// Sync implements disk.Dir.
func (d *memoryDir) Sync() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	d.fs.makeDurable(d.dir)
	d.fs.step("sync " + d.dir.path)
	return nil
}

// Close implements disk.Dir.
func (d *memoryDir) Close() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if d.closed {
		return fs.ErrClosed
	}
	d.closed = true
	d.fs.openDirs--
	return nil
}
