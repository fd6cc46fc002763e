package disk

// Wanted describes the target of one transfer.
type Wanted struct {
	Size     int64 // bytes, if Known
	Known    bool  // false: the source is a stream of unknown length
	Modified Timestamp
	Identity [16]byte // of the source, as reported by its side
	Digest   byte     // algorithm of the chunk checksums; 0: none, and nothing can be resumed

	Overwrite bool // an existing file may be replaced
	Backup    bool // and is kept as NAME~, or if that exists as NAME~2~ and so on
	Resume    bool // a partial file may be resumed, and may be kept for a later transfer
	Basis     bool // begin with the content of the file that is replaced; only if the transfer can be resumed
	Sparse    bool // holes stay holes, so nothing is preallocated

	// Mapped says that the file is written through a mapping, for which all its blocks must be reserved.
	Mapped bool

	// Fill says that several lanes write and the file is not Mapped. On tmpfs the blocks are then not
	// reserved beforehand, which would take half as long as the transfer.
	Fill bool

	// WriteBehind flushes verified content during the transfer, so that Prepare has little left to flush.
	WriteBehind bool

	Preserve Preserve // attributes of the source to apply
}

// resumable reports whether the transfer can be interrupted and resumed: that needs a source that can be read again,
// and checksums to compare.
func (w *Wanted) resumable() bool { return w.Resume && w.Known && w.Digest != 0 }
