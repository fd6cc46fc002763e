package negotiate

// Plan is the result of the two HELLOs. It holds for all transfers of the session.
type Plan struct {
	Version uint8
	Sender  Side

	Tree         bool // a directory is transferred; otherwise one file or a stream
	StreamSource bool // the sender reads from a stream, whose size is known at its end
	StreamTarget bool // the receiver writes to a stream
	Overwrite    bool // the receiver may replace files
	Compare      bool // both sides have it and neither overwrites: nothing is written

	Path  Path
	Chunk uint32 // bytes of a slot, and the largest record of data or a claim
	Depth uint32 // depth of the window

	Digest     Digest
	Durability Durability
	Readback   bool // the receiver reads back what it has written
	Sparse     bool // the receiver keeps the source's holes; otherwise it fills them with zeros

	Owner         bool // the receiver applies the owners of the entries
	XAttr         bool // the sender may send extended attributes, and the receiver applies them
	Links         bool // the sender may announce hard links
	AllowChanging bool // files may change during the transfer
	Checksum      bool // files are compared by content
	DryRun        bool // nothing is written; the answer need decides an entry
	FailFast      bool // the first entry that fails ends the transfer
}

// WindowLength returns the length of the window in bytes.
func (p Plan) WindowLength() uint64 { return uint64(p.Depth) * uint64(p.Chunk) }

// WindowOwner returns the side that has the window in its memory and sends WINDOW: the host, whose memory the DPU's
// engine reaches, or the receiver, to whose consumers the sender's producers send.
func (p Plan) WindowOwner() Side {
	if p.Path == PathFast {
		return p.Sender.Other()
	}
	return Host
}

// Resumable reports whether the receiver may resume files of an earlier transfer. That needs checksums to compare, and
// neither side may be a stream.
func (p Plan) Resumable() bool { return !p.StreamSource && !p.StreamTarget && p.Digest != DigestNone }

// SumDigest returns the algorithm of a SUM: that of the plan, or CRC-32C if there is none.
func (p Plan) SumDigest() Digest { return max(p.Digest, DigestCRC32C) }

// Decide computes the plan from both HELLOs. Both sides call it and get the same result. It fails with
// ErrBothHaveFile, ErrNeitherHasFile, ErrKindMismatch, ErrTreeStream, ErrNoPath or ErrMalformed.
func Decide(host, dpu Hello) (Plan, error) {
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
	if err := checkKinds(from.Flags, to.Flags); err != nil {
		return Plan{}, &Error{Message: TypeHello, Err: err}
	}
	path, err := choosePath(host.Flags, dpu.Flags)
	if err != nil {
		return Plan{}, &Error{Message: TypeHello, Err: err}
	}
	return makePlan(sender, path, from, to), nil
}

// chooseSender returns the sender, or why there is none. Of two sides that have the file the host sends it for
// comparison. The role of a stream follows from that of the other side.
func chooseSender(host, dpu Flags) (Side, error) {
	switch {
	case host.Has(FlagReceives) && dpu.Has(FlagReceives):
		return 0, ErrNeitherHasFile
	case host.Has(FlagReceives):
		return DPU, checkDirection(dpu, host)
	case dpu.Has(FlagReceives):
		return Host, checkDirection(host, dpu)
	case host.isSource() && dpu.isSource() && (host | dpu).Has(FlagRefuseSame):
		return 0, ErrBothHaveFile
	case host.isSource():
		return Host, nil
	case dpu.isSource():
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

// checkDirection returns why the side with the flags from cannot be the sender to one with FlagReceives.
func checkDirection(from, to Flags) error {
	switch {
	case !from.isSource() && !from.Has(FlagStream), from.Has(FlagStream) && to.Has(FlagStream):
		return ErrNeitherHasFile
	case to.isSource() && (from | to).Has(FlagRefuseSame), from.Has(FlagStream) && to.isSource() && to.Has(FlagFile):
		return ErrBothHaveFile
	}
	return nil
}

// isSource reports whether the side has a file or a directory that it does not offer for replacement.
func (f Flags) isSource() bool { return f&(FlagFile|FlagTree) != 0 && !f.Has(FlagOverwrite) }

// checkKinds checks that the sender's file, directory or stream can become what the receiver has.
func checkKinds(from, to Flags) error {
	switch {
	case (from | to).Has(FlagTree | FlagStream):
		return ErrTreeStream
	case (from | to).Has(FlagTree | FlagFile):
		return ErrKindMismatch
	}
	return nil
}

// choosePath returns DMA if both sides can and will use it.
func choosePath(host, dpu Flags) (Path, error) {
	switch {
	case !(host | dpu).Has(FlagNoDMA):
		return PathDMA, nil
	case (host & dpu).Has(FlagFast):
		return PathFast, nil
	}
	return 0, ErrNoPath
}

func makePlan(sender Side, path Path, from, to Hello) Plan {
	either := from.Flags | to.Flags
	both := from.Flags & to.Flags
	compare := from.Flags.isSource() && to.Flags.isSource()
	dryRun := either.Has(FlagDryRun)
	return Plan{
		Version:       from.Version,
		Sender:        sender,
		Tree:          from.Flags.Has(FlagTree),
		StreamSource:  from.Flags.Has(FlagStream),
		StreamTarget:  to.Flags.Has(FlagStream),
		Overwrite:     to.Flags.Has(FlagOverwrite),
		Compare:       compare,
		Path:          path,
		Chunk:         min(from.Chunk, to.Chunk),
		Depth:         min(from.Depth, to.Depth),
		Digest:        max(from.Digest, to.Digest),
		Durability:    max(from.Durability, to.Durability),
		Readback:      either.Has(FlagReadback),
		Sparse:        !either.Has(FlagNoSparse),
		Owner:         both.Has(FlagOwner),
		XAttr:         both.Has(FlagXAttr) && !compare && !dryRun,
		Links:         both.Has(FlagLinks),
		AllowChanging: from.Flags.Has(FlagAllowChanging),
		Checksum:      either.Has(FlagChecksum),
		DryRun:        dryRun,
		FailFast:      either.Has(FlagFailFast),
	}
}
