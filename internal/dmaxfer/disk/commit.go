package disk

import (
	"errors"
	"io/fs"
)

// Commit gives the prepared file its name. After a failure before that the final name holds what it held, and Keep or Discard is to
// follow. A directory that cannot be flushed, or a journal that cannot be removed, is a failure too, although the new name is
// already there. Errors are an ErrTarget; ErrExists if the name was taken meanwhile and may not be replaced.
func (p *Partial) Commit(durability Durability) error {
	// Nobody may take the partial over between the close and the rename.
	held, err := p.file.Hold()
	if err != nil {
		return p.failed("closing", err)
	}
	defer held.Close()
	if err := p.closeAndRename(); err != nil {
		return err
	}
	defer p.release()
	if err := p.removeJournal(); err != nil {
		return p.failed("removing the journal of", err)
	}
	if durability != Full {
		return nil
	}
	if err := p.dir.Sync(); err != nil {
		return p.failed("flushing the directory of", err)
	}
	return nil
}

func (p *Partial) closeAndRename() error {
	named, err := p.isNamed()
	if err != nil {
		return err
	}
	if !named {
		return failure(ErrTarget, nil, "copy again when nobody else works in its directory",
			"the partial file of %s was removed or replaced", p.path)
	}
	p.closed = true
	if err := p.file.Close(); err != nil {
		p.doubtful = true
		return p.failed("closing", err)
	}
	if err := p.backUp(); err != nil {
		return err
	}
	if err := p.rename(); err != nil {
		return err
	}
	p.over = true
	return nil
}

const nextIfExists = "remove it, or allow its replacement with --overwrite"

func (p *Partial) rename() error {
	if p.want.Overwrite {
		if err := p.dir.Rename(p.name, p.base); err != nil {
			return p.failed("renaming", err)
		}
		return nil
	}
	err := p.dir.RenameIfAbsent(p.name, p.base)
	if errors.Is(err, fs.ErrExist) {
		return failure(ErrExists, err, nextIfExists, "%s appeared while it was copied", p.path)
	}
	if err != nil {
		return p.failed("renaming", err)
	}
	return nil
}

// backUp gives what is about to be replaced a second name, so that the first is never without a file.
func (p *Partial) backUp() error {
	if !p.want.Backup || !p.want.Overwrite {
		return nil
	}
	temporary := stem(p.base) + backupSuffix
	err := p.dir.Remove(temporary)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = p.dir.Link(p.base, temporary)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is replaced
	}
	if err == nil {
		err = p.dir.Rename(temporary, p.base+"~")
	}
	if err == nil {
		err = p.dropSecondLink(temporary)
	}
	if err != nil {
		_ = p.dir.Remove(temporary) // the failure is what counts
		return failure(kindOfWrite(err), err, "leave out the backup, or choose a file system with hard links",
			"cannot keep the old %s as %s~: %s", p.path, p.base, Reason(err))
	}
	return nil
}

// dropSecondLink removes the temporary name where NAME~ already was the same file: then the rename has done nothing.
func (p *Partial) dropSecondLink(temporary string) error {
	if err := p.dir.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeJournal leaves alone what is not this copy's: once the partial has got its name, another copy may have made its own.
func (p *Partial) removeJournal() error {
	if p.journal == nil {
		return nil
	}
	opened, err := p.journal.file.Info()
	if err != nil {
		return err
	}
	found, err := p.dir.Stat(p.journalName)
	if err == nil && opened.SameFile(found.Identity) {
		err = p.dir.Remove(p.journalName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
