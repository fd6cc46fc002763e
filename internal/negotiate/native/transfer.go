package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Counts is the number of a transfer's entries by their outcome. A directory that fails after it was decided counts a
// second time, as failed.
type Counts struct {
	Committed uint32 // in a dry run: would be
	Unchanged uint32 // the receiver had them
	Failed    uint32
}

// AppendTransfer appends a TRANSFER: a transfer begins.
func AppendTransfer(dst []byte) []byte { return wire.AppendEmpty(dst, wire.TypeTransfer) }

// DecodeTransfer decodes a TRANSFER. It fails with ErrMalformed.
func DecodeTransfer(msg []byte) error { return wire.DecodeEmpty(msg, wire.TypeTransfer) }

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
