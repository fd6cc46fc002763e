package tree

import "github.com/dma-copy/dma-copy/internal/dmaxfer/disk"

// The bounds of the table of files with several names. It takes at most about 150 bytes for each file besides its path.
const (
	maxLinkedFiles = 200_000
	maxLinkedPaths = 16 << 20 // bytes of their paths
)

// hardLinks remembers the files that have more names than the walk has seen.
type hardLinks struct {
	files     map[fileID]linkedFile
	pathBytes int
	maxFiles  int
	follows   bool // symlinks lead to files as well, which therefore have more names than hard links
	full      bool // a file was left out
}

type fileID struct{ device, inode uint64 }

type linkedFile struct {
	path string // of its first name
	left uint64 // names that were not seen yet
}

// first returns the path of the first name of a file, and whether there was one before the given path. overflow is true
// for the first file that the table cannot remember.
func (h *hardLinks) first(info disk.Info, path string) (first string, seen, overflow bool) {
	id := fileID{info.Device, info.Inode}
	if known, found := h.files[id]; found && h.follows {
		return known.path, true, false
	} else if found {
		known.left--
		if known.left > 0 {
			h.files[id] = known
		} else {
			delete(h.files, id)
			h.pathBytes -= len(known.path)
		}
		return known.path, true, false
	}
	if len(h.files) >= h.maxFiles || h.pathBytes+len(path) > maxLinkedPaths {
		overflow = !h.full
		h.full = true
		return "", false, overflow
	}
	if h.files == nil {
		h.files = make(map[fileID]linkedFile)
	}
	h.files[id] = linkedFile{path: path, left: info.Links - 1}
	h.pathBytes += len(path)
	return "", false, false
}
