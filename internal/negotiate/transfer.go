package negotiate

import "encoding/binary"

const (
	transferSize = 8
	finishSize   = 16 // without the transport
	finishedSize = 24 // likewise
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
// could not announce. transport is as for AppendFinished.
func AppendFinish(dst []byte, total, missing uint32, transport string) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeFinish), total)
	dst = binary.BigEndian.AppendUint32(dst, missing)
	return appendTransport(dst, transport)
}

// DecodeFinish decodes a FINISH. It fails with ErrMalformed.
func DecodeFinish(msg []byte) (total, missing uint32, transport string, err error) {
	if err := checkType(msg, TypeFinish, finishSize); err != nil {
		return 0, 0, "", err
	}
	transport, err = decodeTransport(msg, TypeFinish, finishSize)
	if err != nil {
		return 0, 0, "", err
	}
	return binary.BigEndian.Uint32(msg[4:]), binary.BigEndian.Uint32(msg[8:]), transport, nil
}

// AppendFinished appends a FINISHED: every entry is decided, and what was committed has durability d. transport is what
// carries the content, as UCX names it; it is truncated to MaxTransport bytes, and what is not printable ASCII becomes
// a question mark.
func AppendFinished(dst []byte, d Durability, c Counts, transport string) []byte {
	dst = append(appendType(dst, TypeFinished), byte(d), 0, 0, 0)
	for _, number := range [...]uint32{c.Committed, c.Unchanged, c.Failed} {
		dst = binary.BigEndian.AppendUint32(dst, number)
	}
	return appendTransport(dst, transport)
}

// DecodeFinished decodes a FINISHED. It fails with ErrMalformed.
func DecodeFinished(msg []byte) (d Durability, c Counts, transport string, err error) {
	if err := checkType(msg, TypeFinished, finishedSize); err != nil {
		return 0, Counts{}, "", err
	}
	d = Durability(msg[4])
	if !d.Known() {
		return 0, Counts{}, "", malformed(TypeFinished, "unknown %s", d)
	}
	transport, err = decodeTransport(msg, TypeFinished, finishedSize)
	if err := firstError(checkPadding(TypeFinished, msg[5:8]), err); err != nil {
		return 0, Counts{}, "", err
	}
	return d, Counts{
		Committed: binary.BigEndian.Uint32(msg[8:]),
		Unchanged: binary.BigEndian.Uint32(msg[12:]),
		Failed:    binary.BigEndian.Uint32(msg[16:]),
	}, transport, nil
}

// appendTransport appends the end of FINISH and FINISHED: the length of a text, padding, and the text.
func appendTransport(dst []byte, transport string) []byte {
	if len(transport) > MaxTransport {
		const mark = "..."
		transport = transport[:MaxTransport-len(mark)] + mark
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(transport)))
	dst = appendPadding(dst, 2)
	for _, octet := range []byte(transport) {
		if !printable(octet) {
			octet = '?'
		}
		dst = append(dst, octet)
	}
	return dst
}

// decodeTransport decodes the end of a message with that many bytes before the text.
func decodeTransport(msg []byte, t Type, size int) (string, error) {
	text := string(msg[size:])
	err := firstError(
		checkTail(msg, t, size, uint64(binary.BigEndian.Uint16(msg[size-4:]))),
		checkPadding(t, msg[size-2:size]),
		checkPrintable(t, "transport", text, MaxTransport),
	)
	if err != nil {
		return "", err
	}
	return text, nil
}
