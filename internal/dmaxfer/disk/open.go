package disk

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// OpenPartial creates or resumes the partial file of the target at path, following symlinks like Locate. Errors are
// an ErrTarget: ErrBusy if another process is receiving the target, or may delete it.
func OpenPartial(on FS, path string, want Wanted) (opened *Partial, err error) {
	at, err := Locate(on, path)
	if err != nil {
		return nil, CannotCreate(path, err)
	}
	locks, err := lockDir(at.Dir, LockStore, LockStore, at.Path)
	if err != nil {
		_ = at.Dir.Close() // was only read
		return nil, err
	}
	defer func() {
		if opened == nil { // also after a panic
			_ = locks.Close() // the first error is reported
		}
	}()
	p, err := openPartial(on, at, want)
	if err != nil {
		return nil, err
	}
	p.locks = locks
	return p, nil
}

// openPartial creates or resumes the partial file at a location, whose Dir it closes at the end or if it fails.
func openPartial(on FS, at *Location, want Wanted) (*Partial, error) {
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
	if err := checkDirectory(p.dir, p.path); err != nil {
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
	switch {
	case err != nil:
	case p.journal == nil:
		err = p.useUnnamedFile()
	default:
		p.openBasis(found)
	}
	if err != nil && fresh && !errors.Is(err, ErrBusy) {
		p.Discard()
	}
	return err
}

// useUnnamedFile receives into a file without a name, if nothing is to be kept for a later transfer. No other process
// can open it by name. The file with the partial's name remains as a placeholder that keeps other transfers from
// receiving the same target.
func (p *Partial) useUnnamedFile() error {
	file, err := p.dir.CreateUnnamed(p.base, privateMode, false)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return CannotCreate(p.path, err)
	}
	p.placeholder, p.file = p.file, file
	return nil
}

// checkReplaced stores the mode of the file to be replaced, and finds early what would prevent the final rename.
func (p *Partial) checkReplaced(found *Info) error {
	switch {
	case found == nil:
		return nil
	case !p.want.Overwrite:
		return NewError(ErrExists, nil, nextIfExists, "%s already exists", p.path)
	case found.Mode&fs.ModeSymlink != 0: // of a tree: it is replaced
		return nil
	case !found.Mode.IsRegular():
		return NewError(ErrTarget, nil, "name a regular file", "cannot replace %s: it is not a regular file", p.path)
	case p.want.Backup && len(p.base) == maxNameLength:
		return NewError(ErrTarget, nil, "leave out --backup, or choose a shorter name",
			"the name of %s is too long to append ~", p.path)
	}
	p.replaced = new(uint32(found.Mode.Perm()))
	return checkObstacle(p.dir, p.base, p.path)
}

const nextIfExists = "remove it, or replace it with --overwrite"

// openAndLock opens or creates the partial file and locks it; fresh reports whether it was created.
func (p *Partial) openAndLock() (fresh bool, err error) {
	for range openAttempts {
		p.file, fresh, err = p.openOrCreate()
		if err != nil {
			return fresh, err
		}
		if p.file == nil {
			continue // it was renamed or removed just now
		}
		named, err := p.lock(fresh)
		if err != nil || named {
			return fresh, err
		}
		_ = p.file.Close() // another process has committed it
		p.file = nil
	}
	return false, p.busy()
}

func (p *Partial) openOrCreate() (file File, fresh bool, err error) {
	file, err = p.dir.Create(p.names.partial)
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
		return nil, false, p.cannotUse(p.names.partial, err)
	}
	return file, false, nil
}

// openExisting checks the file before it opens it, and again through the handle, before it changes anything.
func (p *Partial) openExisting() (File, error) {
	self := p.fs.Self()
	found, err := p.dir.Stat(p.names.partial)
	if err == nil {
		err = checkReusable(found, self)
	}
	if err != nil {
		return nil, err
	}
	file, err := p.dir.Open(p.names.partial, false)
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

// openReadOnlyMode opens a partial file whose transfer was killed after the file had got a mode that forbids its
// owner to write. denied is the error of the first attempt.
func (p *Partial) openReadOnlyMode(self Self, denied error) (File, error) {
	sealed, err := p.dir.Open(p.names.partial, true)
	if err != nil {
		return nil, denied
	}
	info, err := sealed.Info()
	if err == nil {
		err = checkReusable(info, self)
	}
	if err == nil {
		err = soon(sealed.Lock)
	}
	if err == nil {
		err = sealed.SetMode(privateMode)
	}
	if err := errors.Join(err, sealed.Close()); err != nil {
		return nil, err
	}
	return p.dir.Open(p.names.partial, false)
}

// lock locks the partial file. On a file system without locks a file that this process has just created needs none.
// named is false if the name no longer leads to the file.
func (p *Partial) lock(fresh bool) (named bool, err error) {
	info, err := p.file.Info()
	if err != nil {
		return false, CannotCreate(p.path, err)
	}
	p.opened = info.Identity
	err = soon(p.file.Lock)
	switch {
	case errors.Is(err, ErrLocked):
		return false, p.busy()
	case errors.Is(err, errors.ErrUnsupported) && fresh:
		p.want.Resume = false
		return true, nil
	case err != nil:
		return false, NewError(ErrTarget, err, "remove it if no copy is running, or choose another directory",
			"cannot lock %s: %s", p.file.Name(), Reason(err))
	}
	return p.isNamed()
}

func (p *Partial) busy() error {
	return NewError(ErrBusy, nil, "wait until it has ended, or receive under another name",
		"%s is being received by another process", p.path)
}

// cannotUse refuses to write to or remove a file that may belong to another user or program.
func (p *Partial) cannotUse(name string, err error) error {
	return NewError(ErrTarget, err, "inspect it, and remove it if it is not needed",
		"cannot use %s in the directory of %s: %s", name, p.path, Reason(err))
}

// removeStale removes a file that a killed transfer left, but no other file of that name.
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

// createJournal creates the journal of a new partial file.
func (p *Partial) createJournal() error {
	if err := p.removeStale(p.names.journal); err != nil {
		return err
	}
	if err := p.removeStale(p.names.link); err != nil {
		return err
	}
	if !p.want.resumable() {
		return nil
	}
	file, err := p.dir.Create(p.names.journal)
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

// resumeOrEmpty resumes an earlier transfer's file, or empties it. In both cases it removes everything beyond the
// verified prefix, so that it reads as zeros.
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
		p.because = reasonOf(why)
	}
	if err := p.createJournal(); err != nil {
		return err
	}
	return p.truncateToResumed()
}

// reasonOf returns the reason of the protocol for an error of resume.
func reasonOf(err error) wire.Discarded {
	switch {
	case errors.Is(err, errOtherSource):
		return wire.DiscardedOtherSource
	case errors.Is(err, errOtherDigest):
		return wire.DiscardedOtherDigest
	case errors.Is(err, errJournalMissing):
		return wire.DiscardedNoJournal
	case errors.Is(err, errMayNotResume):
		return wire.DiscardedNotResumable
	default:
		return wire.DiscardedDamaged
	}
}

func (p *Partial) truncateToResumed() error {
	p.written.Store(p.resumed)
	if err := p.file.Truncate(p.resumed); err != nil {
		return p.failed("truncating the partial file of", err)
	}
	return nil
}

// resume adopts prefix and journal of an earlier transfer, or returns why they cannot be used.
func (p *Partial) resume(left Info) error {
	if !p.want.resumable() {
		return errMayNotResume
	}
	file, err := p.dir.Open(p.names.journal, false)
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

// usableJournal returns the content of a journal that fits the wanted transfer and the partial file.
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
