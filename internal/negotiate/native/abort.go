package native

import (
	"fmt"
	"strconv"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const abortSize = 12 // without the text

// PeerAborted is the peer's ABORT.
type PeerAborted struct {
	Code wire.AbortCode // one of the constants
	Text string         // as received, at most MaxAbortText bytes; may contain any bytes
}

// Error quotes the text in ASCII, so that it cannot control a terminal or start a line in a log.
func (a *PeerAborted) Error() string {
	return fmt.Sprintf("the peer aborted with code %d: %s", a.Code, strconv.QuoteToASCII(a.Text))
}

// ExitCode returns the code with which the program ends.
func (a *PeerAborted) ExitCode() int { return int(a.Code) }

// Hint returns nothing: the text has the next step.
func (a *PeerAborted) Hint() string { return "" }

// AppendAbort appends an ABORT. It truncates text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendAbort(dst []byte, code wire.AbortCode, text string) []byte {
	a := PeerAborted{code.Known(), wire.TruncateText(text, wire.MaxAbortText)}
	return wire.Encode(dst, wire.TypeAbort, &a, (*PeerAborted).fields)
}

func (a *PeerAborted) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &a.Code)
	c.Zeros(3)
	text := wire.Length[uint16](&c, len(a.Text))
	c.Zeros(2)
	c.LimitedText(&a.Text, text, wire.MaxAbortText)
	a.Code = a.Code.Known()
	return c
}

// DecodeAbort decodes an ABORT. It fails with ErrMalformed.
func DecodeAbort(msg []byte) (*PeerAborted, error) {
	a, err := wire.Decode(msg, wire.TypeAbort, (*PeerAborted).fields)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// AppendCancelled appends a CANCELLED: after the sender's ABORT, the receiver commits nothing more.
func AppendCancelled(dst []byte) []byte { return wire.AppendEmpty(dst, wire.TypeCancelled) }

// DecodeCancelled decodes a CANCELLED. It fails with ErrMalformed.
func DecodeCancelled(msg []byte) error { return wire.DecodeEmpty(msg, wire.TypeCancelled) }
