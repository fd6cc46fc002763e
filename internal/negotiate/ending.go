package negotiate

import "encoding/binary"

const (
	totalSize  = 16 // END and PREPARED without the digest
	commitSize = 8
	doneSize   = 8
)

// Total describes the whole file in an END or a PREPARED.
type Total struct {
	Algorithm Digest
	Size      uint64 // bytes
	Digest    []byte // Algorithm.Size() bytes
}

// AppendEnd appends an END: everything was sent.
func AppendEnd(dst []byte, t Total) []byte { return appendTotal(dst, TypeEnd, t) }

// AppendPrepared appends a PREPARED: everything is written.
func AppendPrepared(dst []byte, t Total) []byte { return appendTotal(dst, TypePrepared, t) }

func appendTotal(dst []byte, message Type, t Total) []byte {
	dst = append(appendType(dst, message), byte(t.Algorithm), byte(len(t.Digest)), 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, t.Size)
	return append(dst, t.Digest...)
}

// DecodeEnd decodes an END. Its digest shares memory with msg. It fails with ErrMalformed.
func DecodeEnd(msg []byte) (Total, error) { return decodeTotal(msg, TypeEnd) }

// DecodePrepared decodes a PREPARED. Its digest shares memory with msg. It fails with ErrMalformed.
func DecodePrepared(msg []byte) (Total, error) { return decodeTotal(msg, TypePrepared) }

func decodeTotal(msg []byte, message Type) (Total, error) {
	if err := checkType(msg, message, totalSize); err != nil {
		return Total{}, err
	}
	err := firstError(
		checkTail(msg, message, totalSize, uint64(msg[5])),
		checkPadding(message, msg[6:8]),
	)
	if err != nil {
		return Total{}, err
	}
	t := Total{Algorithm: Digest(msg[4]), Size: binary.BigEndian.Uint64(msg[8:]), Digest: msg[totalSize:]}
	if err := t.check(message); err != nil {
		return Total{}, err
	}
	return t, nil
}

func (t Total) check(message Type) error {
	switch {
	case !t.Algorithm.Known():
		return malformed(message, "unknown %s", t.Algorithm)
	case len(t.Digest) != t.Algorithm.Size():
		return malformed(message, "%d bytes of %s instead of %d", len(t.Digest), t.Algorithm, t.Algorithm.Size())
	}
	return nil
}

// AppendCommit appends a COMMIT: the receiver may rename the file.
func AppendCommit(dst []byte) []byte { return appendPadding(appendType(dst, TypeCommit), 4) }

// DecodeCommit decodes a COMMIT. It fails with ErrMalformed.
func DecodeCommit(msg []byte) error {
	if err := checkFixed(msg, TypeCommit, commitSize); err != nil {
		return err
	}
	return checkPadding(TypeCommit, msg[4:])
}

// AppendDone appends a DONE: the file is renamed, with the given durability.
func AppendDone(dst []byte, d Durability) []byte {
	return append(appendType(dst, TypeDone), byte(d), 0, 0, 0)
}

// DecodeDone decodes a DONE. It fails with ErrMalformed.
func DecodeDone(msg []byte) (Durability, error) {
	if err := checkFixed(msg, TypeDone, doneSize); err != nil {
		return 0, err
	}
	d := Durability(msg[4])
	if !d.Known() {
		return 0, malformed(TypeDone, "unknown %s", d)
	}
	return d, checkPadding(TypeDone, msg[5:])
}
