package negotiate

// AppendEnd appends an END: the sender has read the whole file of size bytes, and the digest is that of its content.
func AppendEnd(dst []byte, entry uint32, size uint64, digest []byte) []byte {
	c := sending(dst, TypeEnd)
	integer(&c, &entry)
	integer(&c, &size)
	c.array(digest)
	return c.all()
}

// DecodeEnd decodes an END with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeEnd(msg []byte, d Digest) (entry uint32, size uint64, digest []byte, err error) {
	c := receiving(msg, TypeEnd)
	integer(&c, &entry)
	integer(&c, &size)
	c.octets(&digest, d.Size())
	return entry, size, digest, c.end()
}

// AppendSum appends a SUM: the digest of the sender's file, which the receiver compares with its own.
func AppendSum(dst []byte, entry uint32, digest []byte) []byte {
	c := sending(dst, TypeSum)
	integer(&c, &entry)
	c.array(digest)
	return c.all()
}

// DecodeSum decodes a SUM with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeSum(msg []byte, d Digest) (entry uint32, digest []byte, err error) {
	c := receiving(msg, TypeSum)
	integer(&c, &entry)
	c.octets(&digest, d.Size())
	return entry, digest, c.end()
}
