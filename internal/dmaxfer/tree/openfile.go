package tree

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// maxOpenFolders is how many directories of one tree stay open. Each call that is using another one adds to it.
const maxOpenFolders = 64

// openFile opens a regular file of a folder, never through a symlink. found is what the walk found there; if it is no
// longer that file the error is an ErrSourceChanged. path is for messages. All errors are a *disk.Error.
func openFile(in *disk.Folder, name string, found disk.Identity, path string) (*disk.Source, error) {
	dir, err := in.Use()
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer in.Unuse()
	file, err := dir.Open(name, true)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	info, err := file.Info()
	if err == nil && info.Mode.IsRegular() && info.SameFile(found) {
		return disk.NewSource(file, info), nil
	}
	_ = file.Close() // was not read
	if err != nil {
		return nil, disk.CannotStat(path, err)
	}
	return nil, changed(path, "was replaced", nil)
}

// OpenAnnounced is Open for a file whose Info has been announced: its size must still be the same and, unless it may
// change, its modification time. It refuses a file that has content although its size is 0, as many have in /proc. Any
// other size that does not match the content is noticed when the file is read.
func (e *Entry) OpenAnnounced(mayChange bool) (*disk.Source, error) {
	source, err := e.Open()
	if err != nil {
		return nil, err
	}
	if err := e.checkAnnounced(source, mayChange); err != nil {
		source.Close()
		return nil, err
	}
	return source, nil
}

func (e *Entry) checkAnnounced(source *disk.Source, mayChange bool) error {
	changed := !source.Info().SameButForChange(e.Info.Identity)
	if mayChange {
		changed = source.Info().Size != e.Info.Size
	}
	if changed {
		return disk.NewError(disk.ErrSourceChanged, nil, "copy again when no other process writes to it",
			"%s changed during the copy", e.Path())
	}
	if e.Info.Size > 0 {
		return nil
	}
	unsized, err := source.Unsized()
	if err == nil && unsized != nil { // which source.Close closes
		err = disk.NewError(disk.ErrSource, nil, "copy it to a regular file first, and send that",
			"%s has content, although its size is 0", e.Path())
	}
	return err
}

// cannotRead returns the error for an entry that was there and cannot be opened.
func cannotRead(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return changed(path, "was removed", err)
	case errors.Is(err, disk.ErrReplaced),
		errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO):
		return changed(path, "was replaced", nil)
	default:
		return disk.NewError(disk.ErrSource, err, "make it readable for this user, or exclude it",
			"cannot read %s: %s", path, disk.Reason(err))
	}
}

// cannotFollow returns the error for a symlink at path with this text.
func cannotFollow(path, text string, err error) error {
	switch {
	case errors.Is(err, disk.ErrOutside):
		return disk.NewError(disk.ErrSource, err, "copy it as a symlink, or exclude it",
			"symlink %s points out of the tree, to %s", path, text)
	case errors.Is(err, unix.ELOOP):
		return disk.NewError(disk.ErrSource, err, "copy it as a symlink, or exclude it",
			"symlink loop: %s points to %s", path, text)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return disk.NewError(disk.ErrSource, err, "fix or remove it, or copy it as a symlink",
			"dangling symlink: %s points to %s", path, text)
	default:
		return cannotRead(path, err)
	}
}

func changed(path, how string, err error) error {
	return disk.NewError(disk.ErrSourceChanged, err, "copy again when no other process changes the tree",
		"%s %s during the copy", path, how)
}
