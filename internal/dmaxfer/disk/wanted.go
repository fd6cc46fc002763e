package disk

// Wanted is the target of one copy.
type Wanted struct {
	Size     int64 // bytes, if Known
	Known    bool  // false: the source is a stream, and ends where it ends
	Modified Timestamp
	Identity [16]byte // of the source, as its side says
	Digest   byte     // how chunks are verified; 0: not at all, and nothing can be resumed

	Overwrite bool // what has the name may be replaced
	Backup    bool // and is kept as NAME~
	Resume    bool // what an earlier copy left may be used, and may be left for a later one
	Sparse    bool // holes stay holes, so nothing is preallocated

	// Fill says that several lanes write, and that nobody touches a mapping of the file: where memory is the disk, room for it need then not be
	// taken beforehand, which would cost half as much as the copy.
	Fill bool

	WriteBehind bool // what is verified is flushed while more arrives, so that little is left for Prepare

	Preserve Preserve
}

// Preserve is which of the source's attributes the target gets.
type Preserve struct {
	Mode   bool // permission bits; otherwise those of what is replaced, or 0644 less the umask
	Times  bool
	Owner  bool
	Xattrs bool
}

// resumable tells whether an interrupted copy could go on: the source must be one that can be read again, and there must be
// digests to compare with.
func (w *Wanted) resumable() bool { return w.Resume && w.Known && w.Digest != 0 }
