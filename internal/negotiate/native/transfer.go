package native

import (
	"fmt"
	"strconv"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Counts is the number of a transfer's entries by their outcome. A directory that fails after it was decided counts a
// second time, as failed.
type Counts struct {
	Committed uint32 // in a dry run: would be
	Unchanged uint32 // the receiver had them
	Failed    uint32
}

// AppendFinish appends a FINISH: total entries were announced. missing is the number of further ones that the sender
// could not announce. transport is as for AppendFinished.
func AppendFinish(dst []byte, total, missing uint32, transport string) []byte {
	c := wire.Sending(dst, wire.TypeFinish)
	transport = printableTransport(transport)
	wire.Integer(&c, &total)
	wire.Integer(&c, &missing)
	transportField(&c, &transport)
	return c.Bytes()
}

// DecodeFinish decodes a FINISH. It fails with ErrMalformed.
func DecodeFinish(msg []byte) (total, missing uint32, transport string, err error) {
	c := wire.Receiving(msg, wire.TypeFinish)
	wire.Integer(&c, &total)
	wire.Integer(&c, &missing)
	transportField(&c, &transport)
	return total, missing, transport, c.End()
}

// AppendFinished appends a FINISHED: every entry is decided, and what was committed has durability d. transport is what
// carries the content, as UCX names it; it is truncated to MaxTransport bytes, and what is not printable ASCII becomes
// a question mark.
func AppendFinished(dst []byte, d wire.Durability, counts Counts, transport string) []byte {
	c := wire.Sending(dst, wire.TypeFinished)
	transport = printableTransport(transport)
	counts.fields(&c, &d, &transport)
	return c.Bytes()
}

// DecodeFinished decodes a FINISHED. It fails with ErrMalformed.
func DecodeFinished(msg []byte) (d wire.Durability, counts Counts, transport string, err error) {
	c := wire.Receiving(msg, wire.TypeFinished)
	counts.fields(&c, &d, &transport)
	if !d.Known() {
		c.Fail("unknown %s", d)
	}
	return d, counts, transport, c.End()
}

func (n *Counts) fields(c *wire.Codec, d *wire.Durability, transport *string) {
	wire.Integer(c, d)
	c.Zeros(3)
	wire.Integer(c, &n.Committed)
	wire.Integer(c, &n.Unchanged)
	wire.Integer(c, &n.Failed)
	transportField(c, transport)
}

// transportField passes the end of FINISH and FINISHED.
func transportField(c *wire.Codec, name *string) {
	size := wire.Length[uint16](c, len(*name))
	c.Zeros(2)
	c.Text(name, size)
	c.Verify(func() error { return wire.CheckPrintable(c.Type(), "transport", *name, MaxTransport) })
}

func printableTransport(name string) string {
	if len(name) > MaxTransport {
		const mark = "..."
		name = name[:MaxTransport-len(mark)] + mark
	}
	octets := []byte(name)
	for i, octet := range octets {
		if !wire.Printable(octet) {
			octets[i] = '?'
		}
	}
	return string(octets)
}

// Beat is the content of a HEARTBEAT: how far this side's own work has come, which the peer cannot see.
type Beat struct {
	Phase uint32 // what the side is doing, at most MaxPhase; its own numbers, which never decrease
	Work  uint64 // bytes done in this phase; never decreases within a phase
}

// follow makes b the next beat of the same side, if that may follow.
func (b *Beat) follow(next Beat) error {
	ahead := next.Phase > b.Phase || next.Phase == b.Phase && next.Work >= b.Work
	if !ahead || next.Phase > MaxPhase {
		return wire.Malformed(wire.TypeHeartbeat, "%d bytes of work in phase %d, after %d in phase %d",
			next.Work, next.Phase, b.Work, b.Phase)
	}
	*b = next
	return nil
}

// AppendBeat appends a HEARTBEAT.
func AppendBeat(dst []byte, b Beat) []byte {
	c := wire.Sending(dst, wire.TypeHeartbeat)
	b.fields(&c)
	return c.Bytes()
}

// DecodeBeat decodes a HEARTBEAT. It fails with ErrMalformed.
func DecodeBeat(msg []byte) (b Beat, err error) {
	c := wire.Receiving(msg, wire.TypeHeartbeat)
	b.fields(&c)
	return b, c.End()
}

func (b *Beat) fields(c *wire.Codec) {
	wire.Integer(c, &b.Phase)
	wire.Integer(c, &b.Work)
}

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
