package tree

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Entry is a file, directory or symlink of the tree.
type Entry struct {
	Kind  wire.EntryKind // EntrySpecial with Options.All only
	Depth int            // 0 for the root
	Name  string         // in its directory, any bytes but '/' and zero; empty for the root
	Info  disk.Info
	Link  string // the text of a symlink; for a hard link, the path of the file's first entry

	// Xattrs are a directory's extended attributes, if Options.Xattrs is set. A file's are read from its Source.
	Xattrs []disk.Xattr

	// Mounted is whether something is mounted on a directory below the root, if Options.All or OneFileSystem is set.
	Mounted bool

	// Dir is the folder of a regular file, held until Release; nil for other kinds.
	Dir *disk.Folder

	// Err is a *disk.Error if the entry, and what is below it, cannot be sent. The walk goes on after it. Kind and Info
	// may then be unknown.
	Err error

	in   string // path of the directory with a slash at the end; empty in the root
	file string // the name in Dir, which is not Name if a symlink was followed
}

// Path returns the path relative to the root, empty for the root.
func (e *Entry) Path() string { return e.in + e.Name }

// Open opens the regular file that the walk found. If another file has taken its place the error is an
// ErrSourceChanged. The file's size and times may differ from Info, if it was written meanwhile. All errors are a
// *disk.Error. Open may be called concurrently.
func (e *Entry) Open() (*disk.Source, error) {
	return openFile(e.Dir, e.file, e.Info.Identity, e.Path())
}

// Release lets go of the entry's folder. Open must not be called afterwards, unless its caller holds Dir.
func (e *Entry) Release() {
	if e.Dir != nil {
		e.Dir.Release()
		e.Dir = nil
	}
}
