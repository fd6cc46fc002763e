package disk

import (
	"hash/maphash"
	"io"
	"io/fs"
	"os"
)

// FS is the part of a file system that transfers need. Its methods may be called concurrently. They return the errors
// of the operating system, wrapped with operation and path; errors.Is finds fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission, errors.ErrUnsupported and the errno values of package unix.
type FS interface {
	// Open opens a file for reading and follows symlinks. It does not wait for a writer if path is a pipe.
	Open(path string) (File, error)

	// OpenDir opens the directory at path. Later changes of the path do not affect the Dir.
	OpenDir(path string) (Dir, error)

	// Stat returns the Info of the file at path, following symlinks.
	Stat(path string) (Info, error)

	// Self returns the process's identity for permission checks.
	Self() Self
}

// Self is the identity of this process for the file system.
type Self struct {
	UID   uint32 // effective user
	Umask uint32
}

// Dir is an open directory. Its methods take names of entries, without separators, and never follow symlinks. They may
// be called concurrently, except for Close.
type Dir interface {
	// Open opens an entry for reading, and for writing unless readOnly.
	Open(name string, readOnly bool) (File, error)

	// Create creates a file with mode 0600 for reading and writing. It fails with fs.ErrExist if the name exists.
	Create(name string) (File, error)

	// OpenDir opens the directory at a path relative to this one, following symlinks. An absolute path starts at the
	// root.
	OpenDir(path string) (Dir, error)

	// Info returns the Info of the directory itself.
	Info() (Info, error)

	// CreateUnnamed creates a file for reading and writing with the given permission bits, regardless of the umask,
	// that has no name until GiveName, so no other process can open it by name. Without a name it is removed by Close.
	// shown is returned by its Name. It fails with errors.ErrUnsupported where the system cannot create or name such
	// files, and if early is set also where it may report failed writes only when a file is closed.
	CreateUnnamed(shown string, permissions uint32, early bool) (File, error)

	// GiveName names a file that CreateUnnamed has made in a directory of the same file system. It fails with
	// fs.ErrExist if the name exists, and with errors.ErrUnsupported for any other file.
	GiveName(file File, name string) error

	// Stat returns the Info of an entry, of a symlink itself and not its target. "." is the directory.
	Stat(name string) (Info, error)

	// ReadLink returns text and Info of one symlink. It fails with unix.EINVAL for any other file.
	ReadLink(name string) (Link, error)

	// List returns the names that are sorted after the given one, sorted. If their NamesSize is more than limit, it
	// returns the first of them, at least one, and that there are more. It must not be called concurrently with itself.
	List(after string, limit int) (names []string, more bool, err error)

	// MayCreate returns an error if this user cannot create files here.
	MayCreate() error

	// Rename renames an entry and replaces an existing entry named to.
	Rename(from, to string) error

	// RenameIfAbsent renames an entry. It fails with fs.ErrExist if an entry named to exists. Where the file system
	// can neither exclude that nor make hard links, an entry that is created at the same time may be replaced.
	RenameIfAbsent(from, to string) error

	// Obstacle returns why an entry cannot be renamed, replaced or removed, or for "." why none of the directory can:
	// ErrMountPoint, ErrImmutable or ErrAppendOnly. It returns nil if it knows of no reason.
	Obstacle(name string) error

	// Link creates another name of a file. It fails with fs.ErrExist if the name exists.
	Link(from, to string) error

	// Remove removes a name, but never a directory's.
	Remove(name string) error

	// Sync makes earlier changes of names durable.
	Sync() error

	// OpenBeneath opens the directory at a relative path whose components are all directories: neither symlinks nor
	// "..", so that the result is below this directory regardless of other processes. It fails with unix.ELOOP,
	// unix.ENOTDIR or unix.EXDEV for any other path.
	OpenBeneath(path string) (Dir, error)

	// MakeDir creates a directory with the given permission bits, less the umask. It fails with fs.ErrExist if the name
	// exists.
	MakeDir(name string, permissions uint32) error

	// RemoveDir removes an empty directory.
	RemoveDir(name string) error

	// Symlink creates a symlink with this text. It fails with fs.ErrExist if the name exists.
	Symlink(text, name string) error

	// LinkTo creates another name of a file in a directory of the same FS. It does not follow a symlink. It fails with
	// fs.ErrExist if the name exists.
	LinkTo(name string, in Dir, as string) error

	// SetLinkModified sets the modification time of a symlink itself.
	SetLinkModified(name string, at Timestamp) error

	// SetLinkOwner sets user and group of a symlink itself. It fails with unix.EINVAL for any other file.
	SetLinkOwner(name string, uid, gid uint32) error

	// SetMode sets the directory's permission bits and sticky bit. The set-group-ID bit stays as it is.
	SetMode(mode uint32) error

	// SetOwner sets the directory's user and group.
	SetOwner(uid, gid uint32) error

	// SetModified sets the directory's modification time.
	SetModified(at Timestamp) error

	// Xattrs returns the directory's extended attributes that this user may read, sorted by name.
	Xattrs() ([]Xattr, error)

	// SetXattr sets one extended attribute of the directory.
	SetXattr(attribute Xattr) error

	// RemoveXattr removes an extended attribute of the directory that Xattrs has returned.
	RemoveXattr(name string) error

	// IsLocal reports whether an Info has inode number, link count and change time of the file itself. Otherwise, as
	// with FUSE and on a network, a cache may return earlier ones, or, as with FAT, the file system has none.
	IsLocal() bool

	// CanSyncFS reports whether SyncFS keeps its promise here. Otherwise each file and directory has to be flushed.
	CanSyncFS() bool

	// Lock locks this directory in one mode, and in another one each directory above it, at most 64 of them, until the
	// result is closed. NoLock leaves out the one or the others. It fails with ErrLocked if another Lock of one of
	// them excludes the mode. Directories that cannot be locked, or that this user may not read, are left out.
	Lock(own, above LockMode) (io.Closer, error)

	// SyncFS makes everything durable that was written to the directory's file system before, content and names. It
	// fails if anything could not be written since the directory was opened, by any process; it reports that once.
	SyncFS() error

	io.Closer
}

// File is an open file. ReadAt, WriteAt and SyncRange may be called concurrently with each other and with one other
// method. Interrupted system calls are repeated. Reads and writes continue until all bytes are transferred or an
// error occurs.
type File interface {
	// Name returns the path that the file was opened with.
	Name() string

	// ReadAt fills p. If the file ends before, it returns the number of bytes read and io.EOF.
	ReadAt(p []byte, offset int64) (int, error)

	// WriteAt writes all of p.
	WriteAt(p []byte, offset int64) (int, error)

	// Read reads from where the last Read ended, at least one byte and at most len(p). At the end of the file or
	// stream it returns io.EOF, possibly with the last bytes. Close interrupts a Read of a stream that waits, as far
	// as the system allows.
	Read(p []byte) (int, error)

	// Write writes all of p where the last Write ended.
	Write(p []byte) (int, error)

	// Info returns the file's current Info.
	Info() (Info, error)

	// Truncate shortens the file, or extends it with a hole.
	Truncate(size int64) error

	// Allocate reserves blocks for a range and extends the file if the range ends beyond its size. It does not change
	// the content. It fails with errors.ErrUnsupported where the file system cannot reserve blocks.
	Allocate(offset, length int64) error

	// Compresses reports whether the file system may store the content in less space, but not in reserved blocks.
	Compresses() bool

	// Filler returns an alternative to WriteAt for a file in memory that has this size by then. It fails, for example
	// with errors.ErrUnsupported, if there is none.
	Filler(size int64) (Filler, error)

	// CopyFrom copies a range of another file to the same offset, and returns how many bytes it has copied: fewer if
	// that file ends before. Where the file system can, both share the blocks.
	CopyFrom(from File, offset, length int64) (int64, error)

	// PunchHole replaces a range by zeros without blocks and keeps the file's size. It fails with
	// errors.ErrUnsupported where the file system has no holes.
	PunchHole(offset, length int64) error

	// NextData returns the offset of the next data at or after offset, or io.EOF if there is none. If the file system
	// does not report holes, everything is data.
	NextData(offset int64) (int64, error)

	// NextHole returns the offset of the next hole at or after offset; the end of the file counts as a hole. It fails
	// with io.EOF at or beyond the end.
	NextHole(offset int64) (int64, error)

	// Sync makes content and metadata durable.
	Sync() error

	// SyncRange writes a range to the device and waits for it, so that a later Sync has less to do. It does not make
	// the range durable, and does nothing where the system has no such call.
	SyncRange(offset, length int64) error

	// SetMode sets the permission bits. It ignores set-id bits.
	SetMode(permissions uint32) error

	// SetOwner sets user and group.
	SetOwner(uid, gid uint32) error

	// SetModified sets the modification time.
	SetModified(at Timestamp) error

	// Xattrs returns the extended attributes that this user may read, sorted by name.
	Xattrs() ([]Xattr, error)

	// SetXattr sets one extended attribute.
	SetXattr(attribute Xattr) error

	// RemoveXattr removes an extended attribute that Xattrs has returned.
	RemoveXattr(name string) error

	// Lock locks the file for this handle, or fails with ErrLocked at once. The lock ends with the handle.
	Lock() error

	// Hold returns a duplicate of the handle. It keeps the lock after the original is closed.
	Hold() (File, error)

	// Free returns how many bytes an unprivileged user can still write to the file system; known is false if it has
	// no size.
	Free() (bytes uint64, known bool)

	// DropCache advises the system to drop durable cached content, so that the next reads come from the device.
	DropCache(offset, length int64)

	// OS returns the file for callers that map it; nil if there is none, or it is closed.
	OS() *os.File

	// Close closes the handle. Some file systems report failed writes only here. Closing twice is an error.
	io.Closer
}

// Filler writes to ranges of a file that have no content yet, without waiting for writers elsewhere in it. Fill may
// be called concurrently for disjoint ranges. Close must follow all of them and precede the file's Close.
type Filler interface {
	// Fill writes whole pages from the beginning of buffer at offset and returns the number of bytes written.
	Fill(buffer []byte, offset int64) int

	io.Closer
}

// Info describes a file.
type Info struct {
	Identity
	Mode      fs.FileMode
	Links     uint64
	UID, GID  uint32
	Allocated int64 // bytes of blocks
}

// Link is a symlink.
type Link struct {
	Info
	Text string // path that it contains
}

// Identity changes whenever a file's content does: its device and inode, its size, and the two times that a write
// updates. A writer cannot set Changed back.
type Identity struct {
	Device, Inode uint64
	Size          int64
	Modified      Timestamp
	Changed       Timestamp
}

// SameFile reports whether both are the same file, regardless of its content.
func (i Identity) SameFile(other Identity) bool {
	return i.Device == other.Device && i.Inode == other.Inode
}

// SameButForChange reports whether both differ in the change time at most.
func (i Identity) SameButForChange(other Identity) bool {
	i.Changed = other.Changed
	return i == other
}

// numbers makes the results of Identity.Number useless to a peer that would like to know inodes.
var numbers = maphash.MakeSeed()

// Number returns a number that all names of a file have in this process, and hardly another file.
func (i Identity) Number() uint64 { return maphash.Comparable(numbers, [2]uint64{i.Device, i.Inode}) }

// Timestamp is a time of a file since 1970, without leap seconds.
type Timestamp struct {
	Sec  int64
	Nsec uint32 // below 1e9
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  string // "user.mime_type"
	Value []byte
}
