package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// markerFormat is the content of a marker, with device and inode of the directory; both are 0 until it has been opened.
const (
	markerFormat = "dma-copy tree %016x %016x\n"
	markerSize   = len("dma-copy tree ") + 16 + len(" ") + 16 + len("\n")
)

var (
	errReadOnly     error = unix.EROFS
	errNoMarkerName       = errors.New("the directory has no name of its own")
)

// marker is the locked file beside a tree that is being received. It uses the names, checks and lock of a Partial.
type marker struct {
	*Partial
	unfinished bool // it was left by an interrupted transfer into the directory
}

// openMarker creates the marker of the tree at a location, or takes over the file of that name. It names no directory
// until name is called, unless an interrupted transfer into this one has left it.
func openMarker(on FS, at *Location) (*marker, error) {
	if at.Name == "." {
		return nil, errNoMarkerName
	}
	if err := checkDirectory(at.Dir, at.Path); err != nil {
		return nil, err // the marker could not be removed
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
	if err == nil && !fresh && at.Found != nil {
		m.unfinished = marks(m.file, at)
	}
	if err == nil && !m.unfinished {
		err = m.reset()
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

// reset makes a new file, or what another transfer has left, a marker that names no directory.
func (m *marker) reset() error {
	if err := m.removeStale(m.names.journal); err != nil {
		return err
	}
	if err := m.file.Truncate(0); err != nil {
		return m.failed("writing the marker of", err)
	}
	return m.name(Identity{})
}

// name has the marker name a directory.
func (m *marker) name(of Identity) error {
	if _, err := m.file.WriteAt(fmt.Appendf(nil, markerFormat, of.Device, of.Inode), 0); err != nil {
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
		return m.failed("flushing the directory of", err)
	}
	return nil
}

// isUnfinished reports whether a marker of this user names the directory at a location.
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
	file, err := p.dir.Open(p.names.partial, true)
	if err != nil {
		return false
	}
	defer file.Close()
	return marks(file, at)
}

// marks reports whether a file is the marker of the directory at a location. One that names none was left when the
// directory had just been created, which is still empty then.
func marks(file File, at *Location) bool {
	of, is := readMarker(file)
	if is && of == (Identity{}) {
		return isEmpty(at)
	}
	return is && at.Found.SameFile(of)
}

func isEmpty(at *Location) bool {
	dir, err := at.Dir.OpenBeneath(at.Name)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := Names(dir)
	return err == nil && len(names) == 0
}

// readMarker returns device and inode of the directory that a marker names.
func readMarker(file File) (of Identity, is bool) {
	text := make([]byte, markerSize)
	info, err := file.Info()
	if err != nil || info.Size != int64(markerSize) {
		return Identity{}, false
	}
	if _, err := file.ReadAt(text, 0); err != nil {
		return Identity{}, false
	}
	_, err = fmt.Sscanf(string(text), markerFormat, &of.Device, &of.Inode)
	return of, err == nil
}
