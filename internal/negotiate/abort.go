package negotiate

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxAbortText is the length of the longest text of an ABORT in bytes.
const MaxAbortText = 512

const abortSize = 12 // without the text

// AbortCode is why a side gives up. The numbers are the program's exit codes.
type AbortCode uint8

// The codes. Any other is taken for AbortFailure, sent or received.
const (
	AbortFailure       AbortCode = 1 // whatever no other code is for
	AbortSettings      AbortCode = 3 // what its user asked for cannot be had from this peer
	AbortSource        AbortCode = 4
	AbortTarget        AbortCode = 5
	AbortDevice        AbortCode = 6
	AbortPeer          AbortCode = 7 // the side it is sent to was silent
	AbortRefused       AbortCode = 8 // authentication or policy
	AbortDigest        AbortCode = 9
	AbortSourceChanged AbortCode = 10
	AbortProtocol      AbortCode = 11
	AbortLimit         AbortCode = 14
	AbortHangup        AbortCode = 129 // SIGHUP; an older release takes it for AbortFailure
	AbortInterrupted   AbortCode = 130
	AbortTerminated    AbortCode = 143
)

func (c AbortCode) known() AbortCode {
	switch c {
	case AbortFailure, AbortSettings, AbortSource, AbortTarget, AbortDevice, AbortPeer, AbortRefused, AbortDigest, AbortSourceChanged,
		AbortProtocol, AbortLimit, AbortHangup, AbortInterrupted, AbortTerminated:
		return c
	}
	return AbortFailure
}

// PeerAborted is the peer's ABORT.
type PeerAborted struct {
	Code AbortCode // one of the constants
	Text string    // as received, at most MaxAbortText bytes: anything can be in it
}

// Error quotes the text in ASCII, so that nothing in it can reach a terminal or start a line in a log.
func (a *PeerAborted) Error() string {
	return fmt.Sprintf("the peer aborted with code %d: %s", a.Code, strconv.QuoteToASCII(a.Text))
}

// AppendAbort appends an ABORT. Text beyond MaxAbortText is cut, and what is no UTF-8 is replaced.
func AppendAbort(dst []byte, code AbortCode, text string) []byte {
	text = truncateText(text, MaxAbortText)
	dst = append(appendType(dst, TypeAbort), byte(code.known()), 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	dst = appendPadding(dst, 2)
	return append(dst, text...)
}

// cutText never cuts through a character.
func truncateText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:max(0, limit)]
}

// DecodeAbort reads an ABORT. ErrMalformed.
func DecodeAbort(msg []byte) (*PeerAborted, error) {
	if err := checkType(msg, TypeAbort, abortSize); err != nil {
		return nil, err
	}
	err := firstError(
		checkTail(msg, TypeAbort, abortSize, uint64(binary.BigEndian.Uint16(msg[8:]))),
		checkPadding(TypeAbort, msg[5:8]),
		checkPadding(TypeAbort, msg[10:12]),
	)
	if err != nil {
		return nil, err
	}
	if len(msg) > abortSize+MaxAbortText {
		return nil, malformed(TypeAbort, "a text of %d bytes, limit %d", len(msg)-abortSize, MaxAbortText)
	}
	return &PeerAborted{Code: AbortCode(msg[4]).known(), Text: string(msg[abortSize:])}, nil
}
