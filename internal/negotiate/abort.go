package negotiate

import (
	"fmt"
	"strconv"
)

const abortSize = 12 // without the text

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
