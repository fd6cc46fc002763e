package negotiate

import "encoding/binary"

const (
	failureSize = 12 // without the text
	resultSize  = 8
)

// Failure is why an entry is not transferred. The rest of the transfer goes on.
type Failure struct {
	Entry uint32
	Code  AbortCode
	Text  string // as received, at most MaxAbortText bytes; may contain any bytes
}

// AppendFailure appends a FAILURE. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendFailure(dst []byte, f Failure) []byte { return appendFailure(dst, f, MaxAbortText) }

func appendFailure(dst []byte, f Failure, limit int) []byte {
	text := truncateText(f.Text, limit)
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeFailure), f.Entry)
	dst = append(dst, byte(f.Code.known()), 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	return append(dst, text...)
}

// DecodeFailure decodes a FAILURE. It fails with ErrMalformed.
func DecodeFailure(msg []byte) (Failure, error) {
	if err := checkType(msg, TypeFailure, failureSize); err != nil {
		return Failure{}, err
	}
	err := firstError(
		checkTail(msg, TypeFailure, failureSize, uint64(binary.BigEndian.Uint16(msg[10:]))),
		checkPadding(TypeFailure, msg[9:10]),
	)
	if err != nil {
		return Failure{}, err
	}
	if len(msg) > failureSize+MaxAbortText {
		return Failure{}, malformed(TypeFailure, "a text of %d bytes, limit %d", len(msg)-failureSize, MaxAbortText)
	}
	return Failure{
		Entry: binary.BigEndian.Uint32(msg[4:]),
		Code:  AbortCode(msg[8]).known(),
		Text:  string(msg[failureSize:]),
	}, nil
}

// MaxResults returns the number of results in a message of maxMessage bytes.
func MaxResults(maxMessage int) int { return max(0, maxMessage-listSize) / resultSize }

// AppendResults appends a RESULTS: the entries with these numbers are committed.
func AppendResults(dst []byte, entries []uint32) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeResults), uint32(len(entries)))
	for _, entry := range entries {
		dst = binary.BigEndian.AppendUint32(dst, entry)
		dst = appendPadding(dst, 4) // the result: committed
	}
	return dst
}

// DecodeResults appends the numbers of the entries in a RESULTS to dst. It fails with ErrMalformed and returns dst
// unchanged.
func DecodeResults(dst []uint32, msg []byte) ([]uint32, error) {
	if err := checkList(msg, TypeResults, resultSize); err != nil {
		return dst, err
	}
	entries := dst
	for at := listSize; at < len(msg); at += resultSize {
		b := msg[at : at+resultSize]
		if b[4] != 0 {
			return dst, malformed(TypeResults, "unknown result %d", b[4])
		}
		if err := checkPadding(TypeResults, b[5:]); err != nil {
			return dst, err
		}
		entries = append(entries, binary.BigEndian.Uint32(b))
	}
	return entries, nil
}
