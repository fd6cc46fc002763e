package tree

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Scope restricts the files of a walk. Directories are in every scope, and so are symlinks that are not followed. The
// zero value is no restriction.
type Scope struct {
	OneFileSystem    bool      // what is below a mount point is left out, also where a symlink that is followed leads
	MinSize, MaxSize int64     // bytes of a file; MaxSize 0: any number
	Newer, Older     time.Time // the file was modified after, and before this; zero: at any time
}

// excludes reports whether a regular file is left out.
func (s Scope) excludes(file disk.Info) bool {
	modified := time.Unix(file.Modified.Sec, int64(file.Modified.Nsec))
	return file.Size < s.MinSize || s.MaxSize > 0 && file.Size > s.MaxSize ||
		!s.Newer.IsZero() && !modified.After(s.Newer) || !s.Older.IsZero() && !modified.Before(s.Older)
}

// excludesFolder reports whether a folder that a symlink leads to is left out.
func (w *Walk) excludesFolder(f *disk.Folder) bool {
	return w.options.Scope.OneFileSystem && f.Identity().Device != w.root.Identity().Device
}
