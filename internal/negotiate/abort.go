package negotiate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const abortSize = 12 // without the text

// AbortCode is why a side gives up. The numbers are the program's exit codes.
type AbortCode uint8

// The codes. Any other is treated as AbortFailure, sent or received.
const (
	AbortFailure       AbortCode = 1 // any other reason
	AbortSettings      AbortCode = 3 // this peer cannot do what the user asked for
	AbortSource        AbortCode = 4
	AbortTarget        AbortCode = 5
	AbortDevice        AbortCode = 6
	AbortPeer          AbortCode = 7 // the side that receives the ABORT was silent
	AbortRefused       AbortCode = 8 // authentication or policy
	AbortDigest        AbortCode = 9
	AbortSourceChanged AbortCode = 10
	AbortProtocol      AbortCode = 11
	AbortLimit         AbortCode = 14
	AbortOtherPath     AbortCode = 64  // no exit code: the window is not within reach; another path may serve instead
	AbortHangup        AbortCode = 129 // SIGHUP; older releases treat it as AbortFailure
	AbortInterrupted   AbortCode = 130
	AbortTerminated    AbortCode = 143
)

func (c AbortCode) known() AbortCode {
	switch c {
	case AbortFailure, AbortSettings, AbortSource, AbortTarget, AbortDevice, AbortPeer, AbortRefused, AbortDigest,
		AbortSourceChanged, AbortProtocol, AbortLimit, AbortOtherPath, AbortHangup, AbortInterrupted, AbortTerminated:
		return c
	}
	return AbortFailure
}

// PeerAborted is the peer's ABORT.
type PeerAborted struct {
	Code AbortCode // one of the constants
	Text string    // as received, at most MaxAbortText bytes; may contain any bytes
}

// Error quotes the text in ASCII, so that it cannot control a terminal or start a line in a log.
func (a *PeerAborted) Error() string {
	return fmt.Sprintf("the peer aborted with code %d: %s", a.Code, strconv.QuoteToASCII(a.Text))
}

// AppendAbort appends an ABORT. It truncates text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendAbort(dst []byte, code AbortCode, text string) []byte {
	a := PeerAborted{code.known(), truncateText(text, MaxAbortText)}
	return encode(dst, TypeAbort, &a, (*PeerAborted).fields)
}

func (a *PeerAborted) fields(c codec) codec {
	integer(&c, &a.Code)
	c.zeros(3)
	text := length[uint16](&c, len(a.Text))
	c.zeros(2)
	c.limitedText(&a.Text, text, MaxAbortText)
	a.Code = a.Code.known()
	return c
}

// truncateText does not split characters.
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

// DecodeAbort decodes an ABORT. It fails with ErrMalformed.
func DecodeAbort(msg []byte) (*PeerAborted, error) {
	a, err := decode(msg, TypeAbort, (*PeerAborted).fields)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// AppendCancelled appends a CANCELLED: after the sender's ABORT, the receiver commits nothing more.
func AppendCancelled(dst []byte) []byte { return appendEmpty(dst, TypeCancelled) }

// DecodeCancelled decodes a CANCELLED. It fails with ErrMalformed.
func DecodeCancelled(msg []byte) error { return decodeEmpty(msg, TypeCancelled) }
