package job

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Pair has both files of a transfer whose direction is known from the start, as messages show them.
type Pair struct{ Source, Target string }

// Exists returns the error for a target that is there and must not be replaced.
func (p Pair) Exists() error {
	return NewError(ErrSource, wire.ErrBothHaveFile,
		"use --overwrite to replace it, or name another target", "%s exists", p.Target)
}

// Differ returns the error for a target that is there, is not the same as the source, and must not be replaced.
func (p Pair) Differ() error {
	return NewError(ErrSource, wire.ErrBothHaveFile, "use --overwrite to replace it, or name another target",
		"%s exists and differs from %s", p.Target, p.Source)
}

// DirectoryForFile returns the error for a source that is a directory and a target that is a file.
func (p Pair) DirectoryForFile() error {
	return NewError(ErrTarget, nil, "remove it, or name another target",
		"%s is a directory, and %s is a file", p.Source, p.Target)
}

// FileForDirectory returns the error for a target that is a directory and a source that is none.
func (p Pair) FileForDirectory() error {
	return NewError(ErrTarget, nil, "end the target with / to copy into it",
		"%s is a directory, and %s is none", p.Target, p.Source)
}

// DirectoryForStream returns the error for a source that is a directory and a target that is a stream.
func (p Pair) DirectoryForStream() error {
	return NewError(ErrSource, nil, "name a directory as the target, or copy an archive of it (tar)",
		"%s is a directory, which cannot be copied to a stream", p.Source)
}

// StreamForStream returns the error for a source and a target that are both streams.
func (p Pair) StreamForStream() error {
	return NewError(ErrSource, nil, "name a file as the target",
		"%s has no known size and is sent as a stream, and so the target cannot be one", p.Source)
}
