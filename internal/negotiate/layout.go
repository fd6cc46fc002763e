package negotiate

import "encoding/binary"

// This file has what the native messages have in common. Their numbers are big-endian, except for the type, and unlike
// in the reference protocol their padding must be zero.

// appendType begins a message.
func appendType(dst []byte, t Type) []byte { return binary.LittleEndian.AppendUint32(dst, uint32(t)) }

func appendPadding(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, 0)
	}
	return dst
}

// checkType refuses a message of another type, or one that is shorter than its fixed fields.
func checkType(msg []byte, t Type, size int) error {
	if got := typeOf(msg); got != t {
		return malformed(got, "not a message of type %s", t)
	}
	if len(msg) < size {
		return malformed(t, "%d bytes, too short for its %d", len(msg), size)
	}
	return nil
}

// checkFixed is checkType for a message of fixed size.
func checkFixed(msg []byte, t Type, size int) error {
	if err := checkType(msg, t, size); err != nil {
		return err
	}
	if len(msg) != size {
		return malformed(t, "%d bytes instead of %d", len(msg), size)
	}
	return nil
}

// checkTail refuses a message whose variable part does not have the declared length.
func checkTail(msg []byte, t Type, head int, declared uint64) error {
	if carried := uint64(len(msg) - head); declared != carried {
		return malformed(t, "declares %d bytes after its fields, carries %d", declared, carried)
	}
	return nil
}

// checkPrintable refuses the name of something that is longer than limit, in bytes, or not printable ASCII.
func checkPrintable(t Type, of, name string, limit int) error {
	if len(name) > limit {
		return malformed(t, "a name of %d bytes of the %s, limit %d", len(name), of, limit)
	}
	for _, octet := range []byte(name) {
		if !printable(octet) {
			return malformed(t, "byte %#x in the name of the %s", octet, of)
		}
	}
	return nil
}

func printable(octet byte) bool { return octet >= ' ' && octet <= '~' }

func checkPadding(t Type, padding []byte) error {
	for _, octet := range padding {
		if octet != 0 {
			return malformed(t, "padding that is not zero")
		}
	}
	return nil
}
