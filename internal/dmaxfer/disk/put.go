package disk

import (
	"errors"
	"io/fs"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Put creates a file with this content, or replaces one if the tree allows it. The final name has the old content or
// the new, even if a step fails. With DurabilityFile and DurabilityFull the content is durable afterwards, and with the
// latter a Sync must follow to make the name durable. For many files Stage, Sync and Commit are faster then.
func (d *Directory) Put(name string, content []byte, meta Metadata) error {
	s, err := d.stage(name, content, meta, d.tree.opt.Durability != wire.DurabilityNone)
	if err != nil {
		return err
	}
	return s.Commit()
}

// Staged is a file that is complete except for its name. It keeps one descriptor open. Its methods must be called one
// at a time; one of Commit and Discard must be called.
type Staged struct {
	in        *Directory // held
	name      string
	file      File
	temporary string // name of the file; empty: it has none
}

// Stage creates a file without its final name. With DurabilityFile and DurabilityFull a Tree.Sync must follow before
// Commit, and with the latter another one after it.
func (d *Directory) Stage(name string, content []byte, meta Metadata) (*Staged, error) {
	return d.stage(name, content, meta, d.FlushesFiles())
}

func (d *Directory) stage(name string, content []byte, meta Metadata, flush bool) (*Staged, error) {
	dir, err := d.useFor(name)
	if err != nil {
		return nil, err
	}
	defer d.Unuse()
	mode, err := d.fileMode(dir, name, meta)
	if err != nil {
		return nil, err
	}
	s, err := d.create(dir, name, mode, meta.Xattrs != nil)
	if err != nil {
		return nil, err
	}
	if err := s.fill(content, meta, mode, flush); err != nil {
		s.remove(dir)
		return nil, err
	}
	d.Hold()
	return s, nil
}

// fileMode returns the final mode of a file: the source's, the replaced file's, or the usual one.
func (d *Directory) fileMode(dir Dir, name string, meta Metadata) (uint32, error) {
	if d.tree.opt.Preserve.Mode {
		return meta.Mode & 0o777, nil
	}
	if !d.fresh {
		found, err := dir.Stat(name)
		if err == nil && found.Mode.IsRegular() {
			return uint32(found.Mode.Perm()), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, d.cannotCreate(name, err)
		}
	}
	return targetMode &^ d.tree.self.Umask, nil
}

// create creates the file without a name, or with a temporary one where that is not supported.
func (d *Directory) create(dir Dir, name string, mode uint32, private bool) (*Staged, error) {
	if private {
		mode = privateMode // another mode could forbid to set extended attributes
	}
	file, err := dir.CreateUnnamed(name, mode, true)
	if err == nil {
		return &Staged{in: d, name: name, file: file}, nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return nil, d.cannotCreate(name, err)
	}
	temporary := temporaryOf(name)
	err = d.withoutStale(dir, temporary, func() error {
		file, err = dir.Create(temporary)
		return err
	})
	if err != nil {
		return nil, d.cannotCreate(name, err)
	}
	return &Staged{in: d, name: name, file: file, temporary: temporary}, nil
}

// fill writes content and attributes.
func (s *Staged) fill(content []byte, meta Metadata, mode uint32, flush bool) error {
	d := s.in
	if len(content) > 0 {
		if _, err := s.file.WriteAt(content, 0); err != nil {
			return d.failed("writing", s.name, err)
		}
	}
	newMode := &mode
	if s.temporary == "" && meta.Xattrs == nil {
		newMode = nil // it has been created with that
	}
	path := func() string { return d.path(s.name) }
	if err := setAttributes(s.file, path, d.tree.opt.Preserve, meta, newMode); err != nil {
		return err
	}
	if flush {
		if err := s.file.Sync(); err != nil {
			return d.failed("flushing", s.name, err)
		}
	}
	return nil
}

// Commit gives the file its final name. It releases everything, also if it fails.
func (s *Staged) Commit() error {
	d := s.in
	defer d.Release()
	dir, err := d.use()
	if err != nil {
		s.remove(dir)
		return err
	}
	defer d.Unuse()
	if s.temporary != "" {
		err = s.rename(dir)
	} else {
		err = s.giveName(dir)
	}
	if err != nil {
		s.remove(dir)
		return err
	}
	return d.changed()
}

// Discard removes the file.
func (s *Staged) Discard() {
	defer s.in.Release()
	dir, err := s.in.use()
	if err != nil {
		s.remove(nil)
		return
	}
	defer s.in.Unuse()
	s.remove(dir)
}

// remove closes the file and removes its temporary name. It reports no errors, because an earlier one is reported.
func (s *Staged) remove(dir Dir) {
	if s.file != nil {
		_ = s.file.Close() // is not used
		s.file = nil
	}
	if s.temporary != "" && dir != nil {
		_ = dir.Remove(s.temporary)
	}
}

// close closes the file.
func (s *Staged) close() error {
	err := s.file.Close()
	s.file = nil
	return s.in.wrap("closing", s.name, err)
}

// giveName names a file that has no name.
func (s *Staged) giveName(dir Dir) error {
	err := s.in.nameNew(dir, s.name, func(name string) error { return dir.GiveName(s.file, name) })
	if err != nil {
		return s.in.cannotCreate(s.name, err)
	}
	return s.close()
}

// rename renames a file with a temporary name. It is closed before, because some file systems report failed writes
// only then.
func (s *Staged) rename(dir Dir) error {
	if err := s.close(); err != nil {
		return err
	}
	if err := s.in.renameNew(dir, s.temporary, s.name); err != nil {
		return s.in.cannotCreate(s.name, err)
	}
	s.temporary = ""
	return nil
}
