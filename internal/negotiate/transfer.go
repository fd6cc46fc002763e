package negotiate

// Counts is the number of a transfer's entries by their outcome. A directory that fails after it was decided counts a
// second time, as failed.
type Counts struct {
	Committed uint32 // in a dry run: would be
	Unchanged uint32 // the receiver had them
	Failed    uint32
}

// AppendTransfer appends a TRANSFER: a transfer begins.
func AppendTransfer(dst []byte) []byte { return appendEmpty(dst, TypeTransfer) }

// DecodeTransfer decodes a TRANSFER. It fails with ErrMalformed.
func DecodeTransfer(msg []byte) error { return decodeEmpty(msg, TypeTransfer) }

// AppendFinish appends a FINISH: total entries were announced. missing is the number of further ones that the sender
// could not announce. transport is as for AppendFinished.
func AppendFinish(dst []byte, total, missing uint32, transport string) []byte {
	c := sending(dst, TypeFinish)
	transport = printableTransport(transport)
	integer(&c, &total)
	integer(&c, &missing)
	transportField(&c, &transport)
	return c.all()
}

// DecodeFinish decodes a FINISH. It fails with ErrMalformed.
func DecodeFinish(msg []byte) (total, missing uint32, transport string, err error) {
	c := receiving(msg, TypeFinish)
	integer(&c, &total)
	integer(&c, &missing)
	transportField(&c, &transport)
	return total, missing, transport, c.end()
}

// AppendFinished appends a FINISHED: every entry is decided, and what was committed has durability d. transport is what
// carries the content, as UCX names it; it is truncated to MaxTransport bytes, and what is not printable ASCII becomes
// a question mark.
func AppendFinished(dst []byte, d Durability, counts Counts, transport string) []byte {
	c := sending(dst, TypeFinished)
	transport = printableTransport(transport)
	counts.fields(&c, &d, &transport)
	return c.all()
}

// DecodeFinished decodes a FINISHED. It fails with ErrMalformed.
func DecodeFinished(msg []byte) (d Durability, counts Counts, transport string, err error) {
	c := receiving(msg, TypeFinished)
	counts.fields(&c, &d, &transport)
	if !d.Known() {
		c.fail("unknown %s", d)
	}
	return d, counts, transport, c.end()
}

func (n *Counts) fields(c *codec, d *Durability, transport *string) {
	integer(c, d)
	c.zeros(3)
	integer(c, &n.Committed)
	integer(c, &n.Unchanged)
	integer(c, &n.Failed)
	transportField(c, transport)
}

// transportField passes the end of FINISH and FINISHED.
func transportField(c *codec, name *string) {
	size := length[uint16](c, len(*name))
	c.zeros(2)
	c.text(name, size)
	c.verify(func() error { return checkPrintable(c.messageType(), "transport", *name, MaxTransport) })
}

func printableTransport(name string) string {
	if len(name) > MaxTransport {
		const mark = "..."
		name = name[:MaxTransport-len(mark)] + mark
	}
	octets := []byte(name)
	for i, octet := range octets {
		if !printable(octet) {
			octets[i] = '?'
		}
	}
	return string(octets)
}
