package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// Plan is the result of the two HELLOs. It holds for all transfers of the session.
type Plan struct {
	Version uint8
	Sender  wire.Side

	Tree         bool // a directory is transferred; otherwise one file or a stream
	StreamSource bool // the sender reads from a stream, whose size is known at its end
	StreamTarget bool // the receiver writes to a stream
	Overwrite    bool // the receiver may replace files
	Compare      bool // both sides have it, and which one counts is not known: nothing is written

	IgnoreExisting bool // the receiver leaves what exists; the answer exists decides an entry

	Path  wire.Path
	Chunk uint32 // bytes of a slot, and the largest record of data or a claim
	Depth uint32 // depth of the window

	Digest     wire.Digest
	Durability wire.Durability
	Readback   bool // the receiver reads back what it has written
	Sparse     bool // the receiver keeps the source's holes; otherwise it fills them with zeros

	Owner         bool // the receiver applies the owners of the entries
	XAttr         bool // the sender may send extended attributes, and the receiver applies them
	Privileged    bool // with XAttr: not only attributes in the namespace user
	Links         bool // the sender may announce hard links
	AllowChanging bool // files may change during the transfer
	Checksum      bool // files are compared by content
	DryRun        bool // nothing is written; the answer need decides an entry, and says why
	FailFast      bool // the first entry that fails ends the transfer
}

// WindowLength returns the length of the window in bytes.
func (p Plan) WindowLength() uint64 { return uint64(p.Depth) * uint64(p.Chunk) }

// WindowOwner returns the side that has the window in its memory and sends WINDOW. On PathDMA that is the host, whose
// memory the DPU's engine reaches; on PathRMA the sender, so that no peer can write to a receiver's memory; on the
// other paths the receiver, to which the sender sends.
func (p Plan) WindowOwner() wire.Side {
	switch {
	case p.Path == wire.PathRMA, p.Path == wire.PathDMA && p.Sender.Initiates():
		return p.Sender
	default:
		return p.Sender.Other()
	}
}

// NamesTransport reports whether a side tells the other which transport of UCX carries the content: on PathMessages and
// PathRMA only the side that opens the other's window learns it.
func (p Plan) NamesTransport(side wire.Side) bool {
	return (p.Path == wire.PathMessages || p.Path == wire.PathRMA) && side != p.WindowOwner()
}

// Resumable reports whether the receiver may resume files of an earlier transfer. That needs checksums to compare, and
// neither side may be a stream.
func (p Plan) Resumable() bool {
	return !p.StreamSource && !p.StreamTarget && p.Digest != wire.DigestNone
}

// SumDigest returns the algorithm of a SUM: the plan's, or XXH3-64 if the plan has none or CRC-32C. A CRC finds errors,
// but does not tell files apart.
func (p Plan) SumDigest() wire.Digest { return max(p.Digest, wire.DigestXXH3) }

// Decide computes the plan from both HELLOs: own is side's, peer the other side's. Both sides call it and get the same
// result. It fails with ErrWordsDiffer, ErrBothHaveFile, ErrNeitherHasFile, ErrKindMismatch, ErrTreeStream, ErrNoPath
// or ErrMalformed.
func Decide(side wire.Side, own, peer Hello) (Plan, error) {
	if err := wire.FirstError(own.check(), peer.check()); err != nil {
		return Plan{}, err
	}
	if own.Version != peer.Version {
		return Plan{}, wire.Malformed(wire.TypeHello, "the two sides name versions %d and %d", own.Version,
			peer.Version)
	}
	if own.Word != peer.Word {
		return Plan{}, &wire.Error{Message: wire.TypeHello, Err: wire.ErrWordsDiffer}
	}
	if !side.Initiates() {
		side, own, peer = side.Other(), peer, own
	}
	initiatorSends, err := chooseSender(own.Flags, peer.Flags)
	if err != nil {
		return Plan{}, &wire.Error{Message: wire.TypeHello, Err: err}
	}
	sender, from, to := side, own, peer
	if !initiatorSends {
		sender, from, to = side.Other(), peer, own
	}
	path, err := choosePath(own.Flags, peer.Flags)
	if err = wire.FirstError(checkKinds(from.Flags, to.Flags), err); err != nil {
		return Plan{}, &wire.Error{Message: wire.TypeHello, Err: err}
	}
	return makePlan(sender, path, from, to), nil
}

// chooseSender reports whether the initiator is the sender, or why neither side is. If both sides have a directory, the
// one receives that has not finished receiving it. If both have the file, the initiator sends it for comparison. The
// role of a stream follows from the other side's role.
func chooseSender(initiator, other Flags) (bool, error) {
	switch {
	case initiator.Has(FlagReceives) && other.Has(FlagReceives):
		return false, wire.ErrNeitherHasFile
	case initiator.Has(FlagReceives):
		return false, checkDirection(other, initiator)
	case other.Has(FlagReceives):
		return true, checkDirection(initiator, other)
	case initiator.isSource() && other.isSource() && initiator.Has(FlagUnfinished) != other.Has(FlagUnfinished):
		return other.Has(FlagUnfinished), nil
	case initiator.isSource() && other.isSource() && (initiator | other).Has(FlagRefuseSame):
		return false, wire.ErrBothHaveFile
	case initiator.isSource():
		return true, nil
	case other.isSource():
		return false, nil
	case initiator.Has(FlagStream) == other.Has(FlagStream):
		return false, wire.ErrNeitherHasFile
	case initiator.Has(FlagStream) && !initiator.receives():
		return true, nil
	case other.Has(FlagStream) && !other.receives():
		return false, nil
	}
	return false, wire.ErrNeitherHasFile
}

// checkDirection returns why the side with the flags from cannot be the sender to one with FlagReceives.
func checkDirection(from, to Flags) error {
	switch {
	case !from.isSource() && !from.Has(FlagStream), from.Has(FlagStream) && to.Has(FlagStream):
		return wire.ErrNeitherHasFile
	case to.isSource() && !to.Has(FlagUnfinished) && (from | to).Has(FlagRefuseSame),
		from.Has(FlagStream) && to.isSource() && to.Has(FlagFile):
		return wire.ErrBothHaveFile
	}
	return nil
}

// isSource reports whether the side has a file or a directory into whose place it does not want to receive.
func (f Flags) isSource() bool { return f&(FlagFile|FlagTree) != 0 && !f.receives() }

// receives reports whether the side receives, regardless of what it has.
func (f Flags) receives() bool { return f&(FlagOverwrite|FlagIgnoreExisting) != 0 }

// isCompared reports whether both sides have a file, or both have a directory and it is not known who receives. Adding
// to a directory replaces nothing.
func isCompared(from, to Flags) bool {
	known := to.Has(FlagReceives) || to.Has(FlagUnfinished) != from.Has(FlagUnfinished)
	return from.isSource() && to.isSource() && !(known && to.Has(FlagTree))
}

// checkKinds checks that the sender's file, directory or stream can become what the receiver has.
func checkKinds(from, to Flags) error {
	switch {
	case (from | to).Has(FlagTree | FlagStream):
		return wire.ErrTreeStream
	case (from | to).Has(FlagTree | FlagFile):
		return wire.ErrKindMismatch
	}
	return nil
}

// pathPreference has the paths that both sides must set a flag for, the best first: remote memory access costs neither
// side's CPU, TLS encrypts, and UCX does not protect a process from its peer.
var pathPreference = []struct {
	path wire.Path
	flag Flags
}{{wire.PathRMA, FlagRMA}, {wire.PathTLS, FlagTLS}, {wire.PathTCP, FlagTCP}, {wire.PathMessages, FlagMessages},
	{wire.PathFast, FlagFast}}

// PreferredPath returns the path that two sides choose if both permit the same ones, at least one of them not PathDMA.
func PreferredPath(permitted func(wire.Path) bool) (path wire.Path, found bool) {
	for _, candidate := range pathPreference {
		if permitted(candidate.path) {
			return candidate.path, true
		}
	}
	return 0, false
}

// choosePath returns the best path that both sides can and will use.
func choosePath(one, other Flags) (wire.Path, error) {
	if !(one | other).Has(FlagNoDMA) {
		return wire.PathDMA, nil
	}
	for _, candidate := range pathPreference {
		if (one & other).Has(candidate.flag) {
			return candidate.path, nil
		}
	}
	return 0, wire.ErrNoPath
}

func makePlan(sender wire.Side, path wire.Path, from, to Hello) Plan {
	either := from.Flags | to.Flags
	both := from.Flags & to.Flags
	compare := isCompared(from.Flags, to.Flags)
	dryRun := either.Has(FlagDryRun)
	return Plan{
		Version:      from.Version,
		Sender:       sender,
		Tree:         from.Flags.Has(FlagTree),
		StreamSource: from.Flags.Has(FlagStream),
		StreamTarget: to.Flags.Has(FlagStream),
		Overwrite:    to.Flags.Has(FlagOverwrite),
		Compare:      compare,

		IgnoreExisting: to.Flags.Has(FlagIgnoreExisting),

		Path:          path,
		Chunk:         min(from.Chunk, to.Chunk),
		Depth:         min(from.Depth, to.Depth),
		Digest:        max(from.Digest, to.Digest),
		Durability:    max(from.Durability, to.Durability),
		Readback:      either.Has(FlagReadback),
		Sparse:        !either.Has(FlagNoSparse),
		Owner:         both.Has(FlagOwner),
		XAttr:         both.Has(FlagXAttr) && !compare,
		Privileged:    both.Has(FlagPrivileged) && !compare,
		Links:         both.Has(FlagLinks),
		AllowChanging: from.Flags.Has(FlagAllowChanging),
		Checksum:      either.Has(FlagChecksum),
		DryRun:        dryRun,
		FailFast:      either.Has(FlagFailFast),
	}
}
