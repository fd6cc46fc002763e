package disk

import (
	"errors"
	"strings"
)

// Leftover is a partial file of a running or an interrupted transfer.
type Leftover struct {
	Name     string
	Journal  string    // name of its journal; empty without one
	Size     int64     // bytes of the file
	Total    int64     // bytes of the target; 0 if unknown
	Prefix   int64     // verified bytes; 0 if unknown
	Modified Timestamp // time of the last write
	InUse    bool      // a running transfer has locked it
	Tree     bool      // it is the marker of a tree: what was received is in the directory of this name
}

// IsLeftover reports whether a name belongs to a partial file or its journal, which an interrupted transfer leaves.
func IsLeftover(name string) bool {
	return strings.HasPrefix(name, ".") &&
		(strings.HasSuffix(name, partialSuffix) || strings.HasSuffix(name, journalSuffix))
}

// RemoveLeftovers removes what an interrupted transfer of the file at path has left although the file is complete: a
// partial file, and what belongs to it. It does not touch what another process is receiving, or what belongs to another
// user, and reports no errors: what remains is removed by the next transfer that replaces the file.
func RemoveLeftovers(on FS, path string) {
	if at, err := Locate(on, path); err == nil {
		removeLeftovers(on, at)
	}
}

// RemoveLeftovers is RemoveLeftovers for a file of this directory, if an interrupted transfer may have left the tree.
func (d *Directory) RemoveLeftovers(name string) {
	if d.fresh || d.tree.marker != nil && !d.tree.marker.unfinished || d.checkName(name) != nil {
		return
	}
	if dir, err := d.use(); err == nil {
		d.Hold()
		removeLeftovers(d.tree.fs, &Location{Dir: &heldDir{Dir: dir, in: d}, Name: name, Path: d.path(name)})
	}
}

// removeLeftovers closes the location's Dir.
func removeLeftovers(on FS, at *Location) {
	p := &Partial{fs: on, dir: at.Dir, path: at.Path, base: at.Name, names: namesOf(at.Name, "")}
	defer p.close()
	if !p.hasLeftovers() || p.chooseNames() != nil {
		return
	}
	// The lock of the partial file keeps other transfers from creating theirs meanwhile.
	if _, err := p.openAndLock(); err != nil {
		return
	}
	_ = p.removeStale(p.names.journal)
	_ = p.removeStale(p.names.link)
	_ = p.removeName()
}

func (p *Partial) hasLeftovers() bool {
	for _, name := range []string{p.names.partial, p.names.journal, p.names.link} {
		if _, err := p.dir.Stat(name); err == nil {
			return true
		}
	}
	return false
}

// FindPartials lists the partial files in a directory, sorted by name. It changes nothing. It briefly locks each
// file, so a transfer that opens one of them at the same time is delayed by at most 50 ms.
func FindPartials(on FS, directory string) ([]Leftover, error) {
	dir, err := on.OpenDir(directory)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := Names(dir)
	var found []Leftover
	for _, name := range names {
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, partialSuffix) {
			found = append(found, lookAtPartial(dir, name))
		}
	}
	return found, err
}

// lookAtPartial returns what can be determined without errors.
func lookAtPartial(dir Dir, name string) Leftover {
	found := Leftover{Name: name}
	info, err := dir.Stat(name)
	if err != nil || !info.Mode.IsRegular() {
		return found
	}
	found.Size, found.Modified = info.Size, info.Modified
	if file, err := openAnyhow(dir, name); err == nil {
		defer file.Close()
		found.InUse = errors.Is(file.Lock(), ErrLocked)
		_, found.Tree = readMarker(file)
	}
	journal := strings.TrimSuffix(name, partialSuffix) + journalSuffix
	if _, err := dir.Stat(journal); err == nil {
		found.Journal = journal
	}
	if file, err := dir.Open(journal, true); err == nil {
		defer file.Close()
		if said, err := readJournal(file); err == nil {
			found.Total, found.Prefix = said.size, said.prefix
		}
	}
	return found
}

// openAnyhow opens a file for writing, which locks of some file systems need, or for reading.
func openAnyhow(dir Dir, name string) (File, error) {
	if file, err := dir.Open(name, false); err == nil {
		return file, nil
	}
	return dir.Open(name, true)
}
