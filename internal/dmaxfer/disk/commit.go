package disk

import (
	"errors"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Commit gives the prepared file its final name. After a failure before that, the final name still has the old
// content, and Keep or Discard must follow. A directory that cannot be flushed or a journal that cannot be removed is
// also a failure, although the new name is already in place. Errors are an ErrTarget: ErrExists if the name was
// created meanwhile and must not be replaced; ErrChanged if another process has changed or replaced the file since
// Prepare, or replaced it right after the rename.
func (p *Partial) Commit(durability Durability) error {
	if err := p.checkPartial(); err != nil {
		return err
	}
	if err := p.closeAndHold(); err != nil {
		return err
	}
	if err := p.rename(); err != nil {
		return err
	}
	defer p.close()
	if err := errors.Join(p.checkTarget(), p.removeLeftovers()); err != nil {
		return err
	}
	if durability != wire.DurabilityFull {
		return nil
	}
	if err := p.dir.Sync(); err != nil {
		return p.failed("flushing the directory of", err)
	}
	return nil
}

// removeLeftovers removes journal and placeholder after the rename.
func (p *Partial) removeLeftovers() error {
	if err := p.removeJournal(); err != nil {
		return p.failed("removing the journal of", err)
	}
	if p.placeholder == nil {
		return nil
	}
	if err := p.removeName(); err != nil {
		return p.failed("removing the partial file of", err)
	}
	return nil
}

// checkPartial compares the file that is about to be renamed with its state after Prepare.
func (p *Partial) checkPartial() error {
	names := uint64(0)
	if p.placeholder == nil {
		names = 1
		if named, err := p.isNamed(); err != nil {
			return err
		} else if !named {
			return p.changed("it was removed or replaced")
		}
	}
	is, err := p.file.Info()
	if err != nil {
		return p.failed("examining", err)
	}
	switch {
	case is.Size != p.sealed.Size:
		return p.changed("it has %d bytes and not %d", is.Size, p.sealed.Size)
	case p.dir.IsLocal() && is.Links != names:
		return p.changed("it has %d hard links", is.Links)
	case !p.unchanged(is.Identity, p.sealed.Identity):
		return p.changed("it was modified after it was complete")
	}
	return nil
}

// unchanged reports whether the file is as it was. Where times may come from a cache only its size says so.
func (p *Partial) unchanged(is, was Identity) bool {
	return is == was || is.Size == was.Size && !p.dir.IsLocal()
}

// closeAndHold closes the file, because some file systems report lost writes only then. A duplicate handle keeps the
// lock until the rename and is used to examine the file.
func (p *Partial) closeAndHold() error {
	held, err := p.file.Hold()
	if err != nil {
		return p.failed("closing", err)
	}
	err = p.file.Close()
	p.file = held
	if err != nil {
		p.distrust("closing it failed")
		return p.failed("closing", err)
	}
	return nil
}

// checkTarget checks that the final name leads to the received file. Renaming works on names and updates the change
// time, so another process could have replaced or changed the file since checkPartial. Where a cache may return
// attributes other than the file's, only its size counts.
func (p *Partial) checkTarget() error {
	found, err := p.dir.Stat(p.base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.failed("examining", err)
	}
	isTarget := err == nil && found.Mode.IsRegular() && found.Size == p.sealed.Size
	if p.dir.IsLocal() {
		isTarget = isTarget && found.SameFile(p.sealed.Identity) && found.Links == 1 &&
			found.Modified == p.sealed.Modified
	}
	if isTarget {
		return nil
	}
	return NewError(ErrChanged, err, "compare it with the source (dma-copy verify) before using it, or copy again",
		"another process replaced or changed %s during the final rename", p.path)
}

// rename gives the file its final name. If backups are kept nothing is replaced that has not got another name just
// before: what has the name now may be the backup of another entry.
func (p *Partial) rename() error {
	err := error(fs.ErrExist)
	for range openAttempts {
		replaces := p.want.Overwrite
		if replaces && p.want.Backup {
			found, err := backUp(p.dir, p.base, p.path)
			if err != nil {
				return err
			}
			replaces = found
		}
		if err := p.checkPartial(); err != nil {
			return err
		}
		err = p.giveName(replaces)
		if !errors.Is(err, fs.ErrExist) || !p.want.Overwrite {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return NewError(ErrExists, err, nextIfExists,
			"%s already exists: another process created it during the copy", p.path)
	}
	if err != nil {
		return p.failed("renaming", err)
	}
	return nil
}

// giveName gives the file its final name, which fails if that exists and nothing is to be replaced. The system call for
// a file that has no name yet cannot replace one, so a target to be replaced is renamed over from a temporary link.
func (p *Partial) giveName(replaces bool) error {
	switch {
	case p.placeholder == nil && replaces:
		return p.dir.Rename(p.names.partial, p.base)
	case p.placeholder == nil:
		return p.dir.RenameIfAbsent(p.names.partial, p.base)
	case !replaces:
		return p.dir.GiveName(p.file, p.base)
	}
	if err := p.dir.GiveName(p.file, p.names.link); err != nil {
		return err
	}
	err := p.dir.Rename(p.names.link, p.base)
	if err != nil {
		_ = p.dir.Remove(p.names.link) // the first error is reported
	}
	return err
}

// FlushFound makes as durable as planned what is at a path already: the content of file, nil if it is durable, and its
// name. shown is the path for messages. All errors are an ErrTarget.
func FlushFound(file File, on FS, path, shown string, durability Durability) error {
	if durability == wire.DurabilityNone {
		return nil
	}
	err := error(nil)
	if file != nil {
		err = file.Sync()
	}
	if err == nil && durability == wire.DurabilityFull {
		var at *Location
		if at, err = Locate(on, path); err == nil {
			err = at.Dir.Sync()
			_ = at.Dir.Close() // was only read
		}
	}
	if err != nil {
		return NewError(ErrTarget, err, "check the disk", "flushing %s failed: %s", shown, Reason(err))
	}
	return nil
}
