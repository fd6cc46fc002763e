package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// OpenPartial makes or resumes the partial file of a target. Symlinks are followed to it as Locate does. Errors are an
// ErrTarget: ErrBusy if another process receives it.
func OpenPartial(on FS, path string, want Wanted) (*Partial, error) {
	at, err := Locate(on, path)
	if err != nil {
		return nil, CannotCreate(path, err)
	}
	p := &Partial{fs: on, dir: at.Dir, path: at.Path, base: at.Name, want: want}
	if err := p.open(at.Found); err != nil {
		if !p.closed {
			p.close()
		}
		return nil, err
	}
	return p, nil
}

func (p *Partial) open(found *Info) error {
	if err := p.checkReplaced(found); err != nil {
		return err
	}
	if err := p.chooseNames(); err != nil {
		return err
	}
	fresh, err := p.openAndLock()
	switch {
	case err != nil:
	case fresh:
		err = p.createJournal()
	default:
		err = p.resumeOrEmpty()
	}
	if err == nil && p.journal == nil {
		err = p.useUnnamedFile()
	}
	if err != nil && fresh && !errors.Is(err, ErrBusy) {
		p.Discard()
	}
	return err
}

// hide receives into a file without a name, which no other process can open by one, where nothing is left to a later
// copy anyway. The file that has the partial's name only keeps others from receiving the same target.
func (p *Partial) useUnnamedFile() error {
	file, err := p.dir.CreateUnnamed(p.base)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return CannotCreate(p.path, err)
	}
	p.placeholder, p.file = p.file, file
	return nil
}

// checkReplaced finds the mode of what is replaced, and early what would keep the target from getting its name.
func (p *Partial) checkReplaced(found *Info) error {
	switch {
	case found == nil:
		return nil
	case !p.want.Overwrite:
		return failure(ErrExists, nil, nextIfExists, "%s already exists", p.path)
	case !found.Mode.IsRegular():
		return failure(ErrTarget, nil, "name a regular file", "cannot replace %s: it is not a regular file", p.path)
	case p.want.Backup && len(p.base) == maxNameLength:
		return failure(ErrTarget, nil, "leave out --backup, or choose a shorter name",
			"the name of %s is too long to append ~", p.path)
	}
	p.replaced = new(uint32(found.Mode.Perm()))
	return nil
}

const nextIfExists = "remove it, or replace it with --overwrite"

// attempts bounds how often the partial's name may change hands while it is opened.
const openAttempts = 10

// take opens and locks what has the partial's name, or makes it; fresh tells which.
func (p *Partial) openAndLock() (fresh bool, err error) {
	for range openAttempts {
		p.file, fresh, err = p.openOrCreate()
		if err != nil {
			return fresh, err
		}
		if p.file == nil {
			continue // it got its final name, or was removed, just now
		}
		named, err := p.lock(fresh)
		if err != nil || named {
			return fresh, err
		}
		_ = p.file.Close() // it is somebody's finished target by now
		p.file = nil
	}
	return false, p.busy()
}

func (p *Partial) openOrCreate() (file File, fresh bool, err error) {
	file, err = p.dir.Create(p.name)
	if err == nil {
		return file, true, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, false, CannotCreate(p.path, err)
	}
	file, err = p.openExisting()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, ErrLocked):
		return nil, false, p.busy()
	case err != nil:
		return nil, false, p.cannotUse(p.name, err)
	}
	return file, false, nil
}

// openExisting judges what has the name before it opens it, and again when it is open, before it changes anything.
func (p *Partial) openExisting() (File, error) {
	self := p.fs.Self()
	found, err := p.dir.Stat(p.name)
	if err == nil {
		err = checkReusable(found, self)
	}
	if err != nil {
		return nil, err
	}
	file, err := p.dir.Open(p.name, false)
	if errors.Is(err, fs.ErrPermission) {
		file, err = p.openReadOnlyMode(self, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Info()
	if err == nil {
		err = checkReusable(info, self)
	}
	if err != nil {
		_ = file.Close() // is not used
		return nil, err
	}
	return file, nil
}

// openSealed opens a partial whose copy was killed after it had got a mode that does not let its owner write; denied is
// what that gave.
func (p *Partial) openReadOnlyMode(self Self, denied error) (File, error) {
	sealed, err := p.dir.Open(p.name, true)
	if err != nil {
		return nil, denied
	}
	info, err := sealed.Info()
	if err == nil {
		err = checkReusable(info, self)
	}
	if err == nil {
		err = sealed.Lock()
	}
	if err == nil {
		err = sealed.SetMode(privateMode)
	}
	if err := errors.Join(err, sealed.Close()); err != nil {
		return nil, err
	}
	return p.dir.Open(p.name, false)
}

// lock claims the partial file. Where the file system has no locks a file that nobody else can have made is claimed by that.
// named is false if the name is no longer the file's.
func (p *Partial) lock(fresh bool) (named bool, err error) {
	info, err := p.file.Info()
	if err != nil {
		return false, CannotCreate(p.path, err)
	}
	p.opened = info.Identity
	err = p.file.Lock()
	if errors.Is(err, ErrLocked) {
		time.Sleep(lockRetryDelay)
		err = p.file.Lock()
	}
	switch {
	case errors.Is(err, ErrLocked):
		return false, p.busy()
	case errors.Is(err, errors.ErrUnsupported) && fresh:
		p.want.Resume = false
		return true, nil
	case err != nil:
		return false, failure(ErrTarget, err, "remove it if no copy is running, or choose another directory",
			"cannot lock %s: %s", p.file.Name(), Reason(err))
	}
	return p.isNamed()
}

func (p *Partial) busy() error {
	return failure(ErrBusy, nil, "wait until it has ended, or receive under another name",
		"%s is being received by another process", p.path)
}

// notOurs refuses to write to, and to remove, what may be another's.
func (p *Partial) cannotUse(name string, err error) error {
	return failure(ErrTarget, err, "inspect it, and remove it if it is not needed",
		"cannot use %s in the directory of %s: %s", name, p.path, Reason(err))
}

// forget removes what a killed copy left behind, and nothing else of its name.
func (p *Partial) removeStale(name string) error {
	found, err := p.dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return CannotCreate(p.path, err)
	}
	if why := checkReusable(found, p.fs.Self()); why != nil {
		return p.cannotUse(name, why)
	}
	if err := p.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.cannotUse(name, err)
	}
	return nil
}

// begin makes the journal of a new partial.
func (p *Partial) createJournal() error {
	if err := p.removeStale(p.journalName); err != nil {
		return err
	}
	if err := p.removeStale(p.linkName); err != nil {
		return err
	}
	if !p.want.resumable() {
		return nil
	}
	file, err := p.dir.Create(p.journalName)
	if err != nil {
		return CannotCreate(p.path, err)
	}
	p.journal = &journal{file: file}
	p.journal.fill(&p.want)
	if err := p.journal.write(0); err != nil {
		return p.failed("writing the journal of", err)
	}
	return nil
}

// takeOver resumes what an earlier copy left, or empties it. What is beyond the verified prefix is cut off in any case, so that it
// reads as zeros.
func (p *Partial) resumeOrEmpty() error {
	left, err := p.file.Info()
	if err != nil {
		return CannotCreate(p.path, err)
	}
	if err := p.file.SetMode(privateMode); err != nil {
		return CannotCreate(p.path, err)
	}
	if why := p.resume(left); why == nil {
		return p.truncateToResumed()
	} else if left.Size > 0 {
		p.discarded = fmt.Sprintf("discarding the partial file of %s: %s", p.path, why)
	}
	if err := p.createJournal(); err != nil {
		return err
	}
	return p.truncateToResumed()
}

func (p *Partial) truncateToResumed() error {
	p.written.Store(p.resumed)
	if err := p.file.Truncate(p.resumed); err != nil {
		return p.failed("truncating the partial file of", err)
	}
	return nil
}

// resume adopts prefix and journal of an earlier copy, or says why they cannot be used.
func (p *Partial) resume(left Info) error {
	if !p.want.resumable() {
		return errMayNotResume
	}
	file, err := p.dir.Open(p.journalName, false)
	if errors.Is(err, fs.ErrNotExist) {
		return errJournalMissing
	}
	if err != nil {
		return fmt.Errorf("its journal cannot be opened: %s", Reason(err))
	}
	found, err := p.usableJournal(file, left)
	if err != nil {
		_ = file.Close() // was only read
		return err
	}
	p.journal = &journal{file: file, record: found.record, recorded: found.prefix}
	p.resumed, p.prefix = found.prefix, found.prefix
	return nil
}

// judge returns what a journal claims if that can be believed of what is left.
func (p *Partial) usableJournal(file File, left Info) (journalContent, error) {
	info, err := file.Info()
	if err == nil {
		err = checkReusable(info, p.fs.Self())
	}
	if err != nil {
		return journalContent{}, fmt.Errorf("its journal cannot be used: %s", Reason(err))
	}
	found, err := readJournal(file)
	if err == nil {
		err = found.matches(&p.want)
	}
	if err == nil && found.prefix > left.Size {
		err = errPartialTooShort
	}
	return found, err
}
