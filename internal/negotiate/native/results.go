package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// AppendEnd appends an END: the sender has read the whole file of size bytes, and digest is the digest of its content.
func AppendEnd(dst []byte, entry uint32, size uint64, digest []byte) []byte {
	c := wire.Sending(dst, wire.TypeEnd)
	wire.Integer(&c, &entry)
	wire.Integer(&c, &size)
	c.Array(digest)
	return c.Bytes()
}

// DecodeEnd decodes an END with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeEnd(msg []byte, d wire.Digest) (entry uint32, size uint64, digest []byte, err error) {
	c := wire.Receiving(msg, wire.TypeEnd)
	wire.Integer(&c, &entry)
	wire.Integer(&c, &size)
	c.Octets(&digest, d.Size())
	return entry, size, digest, c.End()
}

// AppendSum appends a SUM: the digest of the sender's file, which the receiver compares with its own.
func AppendSum(dst []byte, entry uint32, digest []byte) []byte {
	c := wire.Sending(dst, wire.TypeSum)
	wire.Integer(&c, &entry)
	c.Array(digest)
	return c.Bytes()
}

// DecodeSum decodes a SUM with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeSum(msg []byte, d wire.Digest) (entry uint32, digest []byte, err error) {
	c := wire.Receiving(msg, wire.TypeSum)
	wire.Integer(&c, &entry)
	c.Octets(&digest, d.Size())
	return entry, digest, c.End()
}

const (
	failureSize = 12 // without the text
	resultSize  = 8
)

// Failure is why an entry is not transferred. The rest of the transfer goes on.
type Failure struct {
	Entry uint32
	Code  wire.AbortCode
	Text  string // as received, at most MaxAbortText bytes; may contain any bytes
}

// AppendFailure appends a FAILURE. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendFailure(dst []byte, f Failure) []byte { return appendFailure(dst, f, wire.MaxAbortText) }

func appendFailure(dst []byte, f Failure, limit int) []byte {
	c := wire.Sending(dst, wire.TypeFailure)
	f.Code, f.Text = f.Code.Known(), wire.TruncateText(f.Text, limit)
	f.fields(&c)
	return c.Bytes()
}

// DecodeFailure decodes a FAILURE. It fails with ErrMalformed.
func DecodeFailure(msg []byte) (f Failure, err error) {
	c := wire.Receiving(msg, wire.TypeFailure)
	f.fields(&c)
	f.Code = f.Code.Known()
	return f, c.End()
}

func (f *Failure) fields(c *wire.Codec) {
	wire.Integer(c, &f.Entry)
	c.Reason(&f.Code, &f.Text, wire.MaxAbortText)
}

// MaxResults returns the number of results in a message of maxMessage bytes.
func MaxResults(maxMessage int) int { return max(0, maxMessage-wire.ListSize) / resultSize }

// AppendResults appends a RESULTS: the entries with these numbers are committed.
func AppendResults(dst []byte, entries []uint32) []byte {
	return wire.EncodeList(dst, wire.TypeResults, entries, resultFields)
}

// DecodeResults appends the numbers of the entries in a RESULTS to dst. It fails with ErrMalformed and returns dst
// unchanged.
func DecodeResults(dst []uint32, msg []byte) ([]uint32, error) {
	return wire.DecodeList(dst, msg, wire.TypeResults, resultFields)
}

func resultFields(entry *uint32, c wire.Codec) wire.Codec {
	wire.Integer(&c, entry)
	c.Zeros(4) // the result: committed
	return c
}
