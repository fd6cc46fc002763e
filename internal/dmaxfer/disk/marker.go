package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// markerText is the content of a marker, by which it differs from the partial file of a file.
const markerText = "dma-copy tree\n"

var (
	errReadOnly     error = unix.EROFS
	errNoMarkerName       = errors.New("the directory has no name of its own")
)

// marker is the locked file beside a tree that is being received. It uses the names, checks and lock of a Partial.
type marker struct {
	*Partial
	unfinished bool // it was left by an interrupted transfer
}

// openMarker creates the marker of the tree at a location, or adopts the one of an interrupted transfer.
func openMarker(on FS, at *Location) (*marker, error) {
	if at.Name == "." {
		return nil, errNoMarkerName
	}
	dir, err := at.Dir.OpenDir(".")
	if err != nil {
		return nil, CannotCreate(at.Path, err)
	}
	m := &marker{Partial: &Partial{fs: on, dir: dir, path: at.Path, base: at.Name}}
	fresh := false
	err = m.chooseNames()
	if err == nil {
		fresh, err = m.openAndLock()
	}
	if err == nil && !fresh {
		m.unfinished, err = hasMarkerText(m.file)
	}
	if err == nil && !m.unfinished {
		err = m.write()
	}
	if err == nil {
		return m, nil
	}
	if fresh && !errors.Is(err, ErrBusy) {
		_ = m.removeName() // the first error is reported
	}
	m.Partial.close()
	return nil, err
}

// write makes a new file, or the leftover of a file's transfer, the marker of a tree.
func (m *marker) write() error {
	if err := m.removeStale(m.names.journal); err != nil {
		return err
	}
	err := m.file.Truncate(0)
	if err == nil {
		_, err = m.file.WriteAt([]byte(markerText), 0)
	}
	if err != nil {
		return m.failed("writing the marker of", err)
	}
	return nil
}

// close removes the marker if done, unless another file has its name. If durable, no loss of power brings it back.
func (m *marker) close(done, durable bool) error {
	defer m.Partial.close()
	if !done {
		return nil
	}
	if err := m.removeName(); err != nil {
		return NewError(kindOfWrite(err), err, "remove it", "cannot remove %s beside %s: %s",
			m.names.partial, m.path, Reason(err))
	}
	if !durable {
		return nil
	}
	if err := m.dir.Sync(); err != nil {
		return parentNotFlushed(m.path, err)
	}
	return nil
}

// isUnfinished reports whether a marker of this user stands beside a directory.
func isUnfinished(on FS, at *Location) bool {
	if at.Name == "." {
		return false
	}
	p := &Partial{fs: on, dir: at.Dir, path: at.Path, base: at.Name}
	if p.chooseNames() != nil {
		return false
	}
	found, err := p.dir.Stat(p.names.partial)
	if err != nil || checkReusable(found, on.Self()) != nil {
		return false
	}
	return isMarker(p.dir, p.names.partial)
}

// ForeignMarker returns a sentence about what may be another user's marker beside the directory at path, or an empty
// string. That user's next transfer continues the directory, and nobody else's: otherwise anybody who may create files
// beside a directory could have it overwritten.
func ForeignMarker(on FS, path string) string {
	at, err := locateTree(on, path)
	if err != nil {
		return ""
	}
	defer at.Dir.Close()
	name := namesOf(at.Name, "").partial
	found, err := at.Dir.Stat(name)
	if err != nil || found.UID == on.Self().UID || !found.Mode.IsRegular() || found.Size != int64(len(markerText)) {
		return ""
	}
	return fmt.Sprintf("an interrupted copy of user %d has left %s beside it", found.UID, name)
}

// isMarker reports whether a regular file has the content of a marker.
func isMarker(dir Dir, name string) bool {
	file, err := dir.Open(name, true)
	if err != nil {
		return false
	}
	defer file.Close()
	is, err := hasMarkerText(file)
	return err == nil && is
}

func hasMarkerText(file File) (bool, error) {
	info, err := file.Info()
	if err != nil || info.Size != int64(len(markerText)) {
		return false, err
	}
	text := make([]byte, len(markerText))
	if _, err := file.ReadAt(text, 0); err != nil {
		return false, err
	}
	return string(text) == markerText, nil
}
