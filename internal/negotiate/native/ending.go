package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// AppendEnd appends an END: the sender has read the whole file of size bytes, and the digest is that of its content.
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
