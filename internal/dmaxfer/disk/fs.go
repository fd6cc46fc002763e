package disk

import (
	"io"
	"io/fs"
	"os"
)

// FS is a file system, as far as a copy needs it. Its methods may be called concurrently. Errors are those of the operating
// system with operation and path around them; errors.Is finds fs.ErrNotExist, fs.ErrExist, fs.ErrPermission,
// errors.ErrUnsupported and the error numbers of package unix.
type FS interface {
	// Open opens a file for reading. It follows links, and does not wait for a writer should the file be a pipe.
	Open(path string) (File, error)

	// OpenDir opens the directory that path leads to. What happens to the path later does not matter to the Dir.
	OpenDir(path string) (Dir, error)

	// Stat looks at what a path leads to, all links followed.
	Stat(path string) (Info, error)

	// Self is the process, as far as files look different to different processes.
	Self() Self
}

// Self is who this process is to the file system.
type Self struct {
	UID   uint32 // effective
	Umask uint32
}

// Dir is an open directory. Names are of its entries: no separators, and links are never followed. Its methods may be called
// concurrently, Close excepted.
type Dir interface {
	// Open opens what is there, for reading and writing, or for reading only.
	Open(name string, readOnly bool) (File, error)

	// Create makes a file with mode 0600, for reading and writing. It fails with fs.ErrExist if the name is taken.
	Create(name string) (File, error)

	// OpenDir opens the directory that a path leads to from here, links followed; an absolute path starts at the root.
	OpenDir(path string) (Dir, error)

	// Info looks at the directory itself.
	Info() (Info, error)

	// CreateUnnamed makes a file with mode 0600, for reading and writing, that has no name until GiveName: no other
	// process can open it by one. It is gone when it is closed without. shown is what its Name says. It fails with
	// errors.ErrUnsupported where the system cannot make such files, or cannot name them.
	CreateUnnamed(shown string) (File, error)

	// Stat looks at an entry; at a link itself, not at what it leads to. "." is the directory.
	Stat(name string) (Info, error)

	// ReadLink reads a symlink and looks at the same one. It fails with unix.EINVAL for anything else.
	ReadLink(name string) (Link, error)

	// Names are those of all entries, sorted.
	Names() ([]string, error)

	// MayCreate fails if this user cannot make files here.
	MayCreate() error

	// Rename replaces what has the name to.
	Rename(from, to string) error

	// RenameIfAbsent fails with fs.ErrExist if there is something of the name to.
	RenameIfAbsent(from, to string) error

	// Link makes another name of a file. It fails with fs.ErrExist if the name is taken.
	Link(from, to string) error

	// Remove takes a name away. It never removes a directory.
	Remove(name string) error

	// Sync makes the names durable that were given and taken until now.
	Sync() error

	io.Closer
}

// File is an open file. ReadAt, WriteAt and SyncRange may be called concurrently; other methods exclude each other, but not those. Interrupted calls
// are repeated, and reads and writes go on until they have moved all that was asked for, or fail.
type File interface {
	// Name is the path that the file was opened with.
	Name() string

	// ReadAt fills p. It returns io.EOF with what there was if the file ends before.
	ReadAt(p []byte, offset int64) (int, error)

	// WriteAt writes all of p.
	WriteAt(p []byte, offset int64) (int, error)

	// Read reads from where the last Read ended: as much of p as there is, and at least a byte. It returns io.EOF, possibly with
	// the last bytes, at the end of the file or stream. For a stream, Close ends a Read that waits, as far as the system allows.
	Read(p []byte) (int, error)

	// Write writes all of p where the last Write ended.
	Write(p []byte) (int, error)

	// Info is what the file is at the moment.
	Info() (Info, error)

	// Truncate cuts the file, or lengthens it by a hole.
	Truncate(size int64) error

	// Allocate reserves blocks for a range, and lengthens the file if the range ends beyond it; content stays. It fails with
	// errors.ErrUnsupported where the file system cannot.
	Allocate(offset, length int64) error

	// Filler is a way to bring content into the file beside WriteAt, for a file in memory that will have this size by then. It fails with
	// errors.ErrUnsupported, or otherwise, where there is none.
	Filler(size int64) (Filler, error)

	// PunchHole makes a range of zeros without blocks; the file's size stays. It fails with errors.ErrUnsupported where the file
	// system cannot.
	PunchHole(offset, length int64) error

	// NextData is where the next data begins, offset or beyond it; io.EOF if there is none. Where the file system knows no
	// holes all is data.
	NextData(offset int64) (int64, error)

	// NextHole is where the next hole begins, offset or beyond it; the end of the file counts as one. It fails with io.EOF at or
	// beyond the end.
	NextHole(offset int64) (int64, error)

	// Sync makes content and metadata durable.
	Sync() error

	// SyncRange writes a range to the device and waits for it, so that a later Sync has less to do. It promises nothing, and does
	// nothing where the system cannot.
	SyncRange(offset, length int64) error

	// SetMode sets permission bits, and none of the set-id bits.
	SetMode(permissions uint32) error

	// SetOwner sets user and group.
	SetOwner(uid, gid uint32) error

	// SetModified sets the time of the last modification.
	SetModified(at Timestamp) error

	// Xattrs are the extended attributes that this user may read, by name.
	Xattrs() ([]Xattr, error)

	// SetXattr sets one.
	SetXattr(attribute Xattr) error

	// Lock claims the file for this handle, or fails with ErrLocked at once. The lock ends with the handle.
	Lock() error

	// GiveName gives a file of CreateUnnamed a name in its directory, which must still be open. It fails with
	// fs.ErrExist if the name is taken, and with errors.ErrUnsupported for any other file.
	GiveName(name string) error

	// Hold returns another handle of the open file, which keeps the lock beyond the file's Close.
	Hold() (File, error)

	// Free is how many bytes an unprivileged user may still write to the file system; known is false where it has no size.
	Free() (bytes uint64, known bool)

	// DropCache lets the next reads come from the device, as far as what is cached there is durable. It is only a wish.
	DropCache(offset, length int64)

	// OS is the file for those who map it; nil where there is none.
	OS() *os.File

	// Close reports what a file system found wrong as late as this. Closing twice is an error.
	io.Closer
}

// Filler brings content to where a file has none yet, without waiting for those who write elsewhere in it. Fill may be called
// concurrently, with ranges that do not overlap; Close excludes it, and comes before the file's.
type Filler interface {
	// Fill says how many bytes from the beginning of buffer it has brought to offset: whole pages, as many as it could.
	Fill(buffer []byte, offset int64) int

	io.Closer
}

// Info is what a file looks like.
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
	Text string // the path that it stands for
}

// Identity is what changes when a file's content does: its place, its length, and the two times that a write moves. The second
// of them, Changed, cannot be set back by the writer.
type Identity struct {
	Device, Inode uint64
	Size          int64
	Modified      Timestamp
	Changed       Timestamp
}

// SameFile is true of two names, or of a name and a handle, of one file.
func (i Identity) SameFile(other Identity) bool {
	return i.Device == other.Device && i.Inode == other.Inode
}

// Timestamp is a time of a file: since 1970, without leap seconds.
type Timestamp struct {
	Sec  int64
	Nsec uint32 // below 1e9
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  string // "user.mime_type"
	Value []byte
}
