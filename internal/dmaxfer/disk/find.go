package disk

import (
	"errors"
	"strings"
)

// Leftover is a partial file in a directory: of a copy that runs, or of one that was interrupted.
type Leftover struct {
	Name     string
	Journal  string    // the name of its journal; empty if there is none
	Size     int64     // bytes of the file
	Total    int64     // bytes of the target; 0 if no journal says
	Prefix   int64     // bytes that are verified; 0 if no journal says
	Modified Timestamp // when somebody last wrote to it
	InUse    bool      // by a copy that runs
}

// FindPartials lists the partial files in a directory, sorted by name. It changes nothing; a copy that wants one of them at
// this very moment waits a little.
func FindPartials(on FS, directory string) ([]Leftover, error) {
	dir, err := on.OpenDir(directory)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	var found []Leftover
	for _, name := range names {
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, partialSuffix) {
			found = append(found, lookAtPartial(dir, name))
		}
	}
	return found, err
}

// lookAtPartial tells what can be found out.
func lookAtPartial(dir Dir, name string) Leftover {
	found := Leftover{Name: name}
	info, err := dir.Stat(name)
	if err != nil || !info.Mode.IsRegular() {
		return found
	}
	found.Size, found.Modified = info.Size, info.Modified
	found.InUse = isLocked(dir, name)
	journal := strings.TrimSuffix(name, partialSuffix) + journalSuffix
	if _, err := dir.Stat(journal); err == nil {
		found.Journal = journal
	}
	if said, err := readJournalOf(dir, journal); err == nil {
		found.Total, found.Prefix = said.size, said.prefix
	}
	return found
}

func isLocked(dir Dir, name string) bool {
	file, err := dir.Open(name, false)
	if err != nil {
		file, err = dir.Open(name, true)
	}
	if err != nil {
		return false
	}
	defer file.Close()
	return errors.Is(file.Lock(), ErrLocked)
}

func readJournalOf(dir Dir, name string) (journalContent, error) {
	file, err := dir.Open(name, true)
	if err != nil {
		return journalContent{}, err
	}
	defer file.Close()
	return readJournal(file)
}
