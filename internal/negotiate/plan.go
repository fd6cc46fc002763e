package negotiate

// Plan is the result of the two HELLOs.
type Plan struct {
	Version uint8
	Sender  Side

	Size         uint64 // bytes, if SizeKnown
	SizeKnown    bool   // false for a stream, whose length is known at its end
	StreamTarget bool   // the receiver writes to a stream
	Overwrite    bool   // the receiver may replace a file

	Chunk uint32 // bytes of a slot, and the largest record of data or a claim
	Depth uint32 // depth of the window

	Digest     Digest
	Durability Durability
	Readback   bool // the receiver reads back what it has written
	Sparse     bool // the receiver keeps the source's holes; otherwise it fills them with zeros

	// Attributes of the source; of a stream, as its side states them.
	MTime    Timestamp
	Mode     uint32 // permission bits
	UID, GID uint32
	Identity [16]byte

	Owner         bool // the receiver applies UID and GID
	XAttr         bool // the sender may send extended attributes, and the receiver applies them
	AllowChanging bool // the source may change during the copy
}

// WindowLength returns the length of the host's window in bytes.
func (p Plan) WindowLength() uint64 { return uint64(p.Depth) * uint64(p.Chunk) }

// Resumable reports whether the receiver may resume an earlier transfer. That needs checksums to compare, and neither
// side may be a stream.
func (p Plan) Resumable() bool { return p.SizeKnown && !p.StreamTarget && p.Digest != DigestNone }

// Decide computes the plan from both HELLOs. Both sides call it and get the same result. It fails with
// ErrBothHaveFile, ErrNeitherHasFile, ErrMalformed, or ErrTooLarge for a file larger than limits.MaxFileSize.
func Decide(host, dpu Hello, limits Limits) (Plan, error) {
	if err := firstError(host.check(), dpu.check()); err != nil {
		return Plan{}, err
	}
	if host.Version != dpu.Version {
		return Plan{}, malformed(TypeHello, "host and DPU name versions %d and %d", host.Version, dpu.Version)
	}
	sender, err := chooseSender(host.Flags, dpu.Flags)
	if err != nil {
		return Plan{}, &Error{Message: TypeHello, Err: err}
	}
	from, to := host, dpu
	if sender == DPU {
		from, to = dpu, host
	}
	if limit := limits.fileSize(); from.Size > limit {
		return Plan{}, tooLarge(TypeHello, "the sender's file has", from.Size, limit)
	}
	return makePlan(sender, from, to), nil
}

// chooseSender returns the sender, or why there is none. The role of a stream follows from that of the other side.
func chooseSender(host, dpu Flags) (Side, error) {
	switch {
	case host.Has(FlagHasFile) && dpu.Has(FlagHasFile):
		return 0, ErrBothHaveFile
	case host.Has(FlagHasFile):
		return Host, nil
	case dpu.Has(FlagHasFile):
		return DPU, nil
	case host.Has(FlagStream) == dpu.Has(FlagStream):
		return 0, ErrNeitherHasFile
	case host.Has(FlagStream) && !host.Has(FlagOverwrite):
		return Host, nil
	case dpu.Has(FlagStream) && !dpu.Has(FlagOverwrite):
		return DPU, nil
	}
	return 0, ErrNeitherHasFile
}

func makePlan(sender Side, from, to Hello) Plan {
	either := from.Flags | to.Flags
	both := from.Flags & to.Flags
	return Plan{
		Version:       from.Version,
		Sender:        sender,
		Size:          from.Size,
		SizeKnown:     from.Flags.Has(FlagHasFile),
		StreamTarget:  to.Flags.Has(FlagStream),
		Overwrite:     to.Flags.Has(FlagOverwrite),
		Chunk:         min(from.Chunk, to.Chunk),
		Depth:         min(from.Depth, to.Depth),
		Digest:        max(from.Digest, to.Digest),
		Durability:    max(from.Durability, to.Durability),
		Readback:      either.Has(FlagReadback),
		Sparse:        !either.Has(FlagNoSparse),
		MTime:         from.MTime,
		Mode:          from.Mode,
		UID:           from.UID,
		GID:           from.GID,
		Identity:      from.Identity,
		Owner:         both.Has(FlagOwner),
		XAttr:         both.Has(FlagXAttr),
		AllowChanging: from.Flags.Has(FlagAllowChanging),
	}
}
