package disk

import "errors"

// Prober finds out what file systems store of attributes: times may be rounded down or limited to a range, and modes
// and owners be fixed. It sets attributes of a file that has no name, or loses it at once, and remembers the results.
// It is for one goroutine.
type Prober struct {
	stored map[attributes]attributes
	links  map[uint64]bool // device: it stores the time of symlinks
}

// attributes are the attributes of a file on one device.
type attributes struct {
	device   uint64
	mode     uint32
	uid, gid uint32
	modified Timestamp
}

// sample is a time that shows by how much a file system rounds: it has an odd second, and all digits of a nanosecond.
var sample = Timestamp{Sec: 1_700_000_001, Nsec: 987_654_321}

// roundings are the units to which file systems round times down, in nanoseconds, from exact ones to FAT's 2 s.
var roundings = []int64{1, 100, 1e3, 1e6, 1e7, 1e9, 2e9}

// The seconds of times that all file systems can store: FAT starts in 1980, and others end in 2038.
const (
	firstTime = 10 * 366 * 24 * 3600
	lastTime  = 1<<31 - 2
)

// Stored returns meta with the mode, owner and modification time that a file in this directory has after meta's were
// set; the owner only if owner says so. Attributes that cannot be tried stay as they are.
func (p *Prober) Stored(dir Dir, meta Metadata, owner bool) Metadata {
	in, err := dir.Info()
	if err != nil {
		return meta
	}
	wanted := attributes{device: in.Device, mode: meta.Mode & 0o777, modified: sample}
	if owner {
		wanted.uid, wanted.gid = meta.UID, meta.GID
	}
	if meta.Modified.Sec < firstTime || meta.Modified.Sec > lastTime {
		wanted.modified = meta.Modified
	}
	stored, known := p.stored[wanted]
	if !known {
		stored = try(dir, in, wanted, owner)
		if p.stored == nil || len(p.stored) >= maxProbed {
			p.stored = make(map[attributes]attributes)
		}
		p.stored[wanted] = stored
	}
	meta.Mode = stored.mode
	if owner {
		meta.UID, meta.GID = stored.uid, stored.gid
	}
	if wanted.modified == sample {
		meta.Modified = roundLike(meta.Modified, stored.modified)
	} else {
		meta.Modified = stored.modified
	}
	return meta
}

// roundLike rounds a time as the sample was rounded when it was stored.
func roundLike(at, stored Timestamp) Timestamp {
	for _, unit := range roundings {
		if sample.roundDown(unit) == stored {
			return at.roundDown(unit)
		}
	}
	return at
}

// roundDown rounds to a number of nanoseconds that divides one second or is a multiple of it.
func (t Timestamp) roundDown(unit int64) Timestamp {
	if seconds := unit / 1e9; seconds > 0 {
		return Timestamp{Sec: t.Sec - (t.Sec%seconds+seconds)%seconds}
	}
	return Timestamp{Sec: t.Sec, Nsec: t.Nsec - t.Nsec%uint32(unit)}
}

// try sets attributes in the order of Partial.setAttributes and returns what is stored of them, or the same attributes
// if that fails.
func try(dir Dir, in Info, wanted attributes, owner bool) attributes {
	file, err := openProbe(dir, in)
	if err != nil {
		return wanted
	}
	defer file.Close()
	if owner {
		err = file.SetOwner(wanted.uid, wanted.gid)
	}
	err = errors.Join(err, file.SetMode(wanted.mode), file.SetModified(wanted.modified))
	is, failed := file.Info()
	if err != nil || failed != nil {
		return wanted
	}
	return attributes{
		device: wanted.device, mode: uint32(is.Mode.Perm()), uid: is.UID, gid: is.GID, modified: is.Modified,
	}
}

// openProbe creates a file without a name, or one whose name it removes. Then it sets the directory's time again, from
// in: a dry run changes nothing.
func openProbe(dir Dir, in Info) (File, error) {
	file, err := dir.CreateUnnamed(".", privateMode, false)
	if !errors.Is(err, errors.ErrUnsupported) {
		return file, err
	}
	name := probeName()
	if file, err = dir.Create(name); err != nil {
		return nil, err
	}
	err = dir.Remove(name)
	_ = dir.SetModified(in.Modified) // only its owner may
	if err != nil {
		_ = file.Close() // is not used
		return nil, err
	}
	return file, nil
}

// probeName returns a reserved name, so that no transfer sends a file that was left there.
func probeName() string { return namesOf("probe", newTag()).link }

// SetsLinks reports whether times and owners of symlinks can be set in a directory.
func (p *Prober) SetsLinks(dir Dir) bool {
	if dir.IsLocal() {
		return true
	}
	in, err := dir.Info()
	if err != nil {
		return false
	}
	sets, known := p.links[in.Device]
	if !known {
		sets = setsLinks(dir)
		_ = dir.SetModified(in.Modified) // only its owner may
		if p.links == nil {
			p.links = make(map[uint64]bool)
		}
		p.links[in.Device] = sets
	}
	return sets
}

// setsLinks tries it with a symlink that points to itself. sshfs fails: it changes what a symlink points to.
func setsLinks(dir Dir) bool {
	if dir.IsLocal() {
		return true
	}
	name := probeName()
	if dir.Symlink(name, name) != nil {
		return false
	}
	err := dir.SetLinkModified(name, sample)
	_ = dir.Remove(name)
	return err == nil
}
