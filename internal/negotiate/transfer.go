package negotiate

import "encoding/binary"

const (
	transferSize = 8
	finishSize   = 16
	finishedSize = 24
)

// Counts is the number of a transfer's entries by their outcome. A directory that fails after it was decided counts a
// second time, as failed.
type Counts struct {
	Committed uint32 // in a dry run: would be
	Unchanged uint32 // the receiver had them
	Failed    uint32
}

// AppendTransfer appends a TRANSFER: a transfer begins.
func AppendTransfer(dst []byte) []byte { return appendPadding(appendType(dst, TypeTransfer), 4) }

// DecodeTransfer decodes a TRANSFER. It fails with ErrMalformed.
func DecodeTransfer(msg []byte) error {
	if err := checkFixed(msg, TypeTransfer, transferSize); err != nil {
		return err
	}
	if flags := binary.BigEndian.Uint32(msg[4:]); flags != 0 {
		return malformed(TypeTransfer, "unknown flags %#x", flags)
	}
	return nil
}

// AppendFinish appends a FINISH: total entries were announced. missing is the number of further ones that the sender
// could not announce.
func AppendFinish(dst []byte, total, missing uint32) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeFinish), total)
	dst = binary.BigEndian.AppendUint32(dst, missing)
	return appendPadding(dst, 4)
}

// DecodeFinish decodes a FINISH. It fails with ErrMalformed.
func DecodeFinish(msg []byte) (total, missing uint32, err error) {
	if err := checkFixed(msg, TypeFinish, finishSize); err != nil {
		return 0, 0, err
	}
	return binary.BigEndian.Uint32(msg[4:]), binary.BigEndian.Uint32(msg[8:]), checkPadding(TypeFinish, msg[12:])
}

// AppendFinished appends a FINISHED: every entry is decided, and what was committed has durability d.
func AppendFinished(dst []byte, d Durability, c Counts) []byte {
	dst = append(appendType(dst, TypeFinished), byte(d), 0, 0, 0)
	for _, number := range [...]uint32{c.Committed, c.Unchanged, c.Failed, 0} {
		dst = binary.BigEndian.AppendUint32(dst, number)
	}
	return dst
}

// DecodeFinished decodes a FINISHED. It fails with ErrMalformed.
func DecodeFinished(msg []byte) (Durability, Counts, error) {
	if err := checkFixed(msg, TypeFinished, finishedSize); err != nil {
		return 0, Counts{}, err
	}
	d := Durability(msg[4])
	if !d.Known() {
		return 0, Counts{}, malformed(TypeFinished, "unknown %s", d)
	}
	err := firstError(checkPadding(TypeFinished, msg[5:8]), checkPadding(TypeFinished, msg[20:]))
	if err != nil {
		return 0, Counts{}, err
	}
	return d, Counts{
		Committed: binary.BigEndian.Uint32(msg[8:]),
		Unchanged: binary.BigEndian.Uint32(msg[12:]),
		Failed:    binary.BigEndian.Uint32(msg[16:]),
	}, nil
}
