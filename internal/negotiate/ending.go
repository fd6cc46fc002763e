package negotiate

import "encoding/binary"

const (
	endSize = 16 // without the digest
	sumSize = 8  // without the digest
)

// AppendEnd appends an END: the sender has read the whole file of size bytes, and the digest is that of its content.
func AppendEnd(dst []byte, entry uint32, size uint64, digest []byte) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeEnd), entry)
	dst = binary.BigEndian.AppendUint64(dst, size)
	return append(dst, digest...)
}

// DecodeEnd decodes an END with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeEnd(msg []byte, d Digest) (entry uint32, size uint64, digest []byte, err error) {
	if err := checkFixed(msg, TypeEnd, endSize+d.Size()); err != nil {
		return 0, 0, nil, err
	}
	return binary.BigEndian.Uint32(msg[4:]), binary.BigEndian.Uint64(msg[8:]), msg[endSize:], nil
}

// AppendSum appends a SUM: the digest of the sender's file, which the receiver compares with its own.
func AppendSum(dst []byte, entry uint32, digest []byte) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeSum), entry)
	return append(dst, digest...)
}

// DecodeSum decodes a SUM with a digest by d. The digest shares memory with msg. It fails with ErrMalformed.
func DecodeSum(msg []byte, d Digest) (entry uint32, digest []byte, err error) {
	if err := checkFixed(msg, TypeSum, sumSize+d.Size()); err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint32(msg[4:]), msg[sumSize:], nil
}
