package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Sizes in bytes of what a message begins with.
const (
	TypeSize = 4 // the type
	ListSize = 8 // the type, and the length of a list
)

// Codec passes over the fields of one message in their order: it appends them to a message to send, or reads them from
// a received one. The layout of a message is thus in one place, its method fields. Numbers are big-endian, except for
// the type. Such a method, or function, takes and returns the codec as a value, so that it does not escape to the heap.
type Codec struct {
	message Type
	dst     []byte // of a message to send: what it is appended to
	bytes   []byte // of a message to send: what it has so far; of a received one: what is left
	reads   bool
	left    uint32 // elements of the list that are left
	err     error  // the first one about a received message
}

// Sending returns the codec of a message to append to dst.
func Sending(dst []byte, t Type) Codec {
	return Codec{message: t, dst: dst, bytes: binary.LittleEndian.AppendUint32(dst, uint32(t))}
}

// Receiving returns the codec of a received message, which must have this type.
func Receiving(msg []byte, t Type) Codec {
	c := Codec{message: t, reads: true}
	switch got := TypeOf(msg); {
	case len(msg) < TypeSize:
		c.err = Malformed(0, "%d bytes, too short for a type", len(msg))
	case got != t:
		c.err = Malformed(got, "not a message of type %s", t)
	default:
		c.bytes = msg[TypeSize:]
	}
	return c
}

// Appending is Sending for a part of a message, which has no type of its own.
func Appending(dst []byte, t Type) Codec { return Codec{message: t, dst: dst, bytes: dst} }

// Reading is Receiving for a part of a message.
func Reading(part []byte, t Type) Codec { return Codec{message: t, bytes: part, reads: true} }

// Type returns the type of the message.
func (c *Codec) Type() Type { return c.message }

// Bytes returns what a message to send was appended to, and the message.
func (c *Codec) Bytes() []byte { return c.bytes }

// Failure returns why a received message is malformed so far.
func (c *Codec) Failure() error { return c.err }

// Encode appends a message without checking it.
func Encode[T any](dst []byte, t Type, m *T, fields func(*T, Codec) Codec) []byte {
	return fields(m, Sending(dst, t)).bytes
}

// Decode is the reverse of Encode. It fails with ErrMalformed, or as the checks of the fields do, and returns the zero
// value then.
func Decode[T any](msg []byte, t Type, fields func(*T, Codec) Codec) (m T, err error) {
	c := fields(&m, Receiving(msg, t))
	if err := c.End(); err != nil {
		return *new(T), err
	}
	return m, nil
}

// EncodeList appends a message that consists of a list, without checking it.
func EncodeList[T any](dst []byte, t Type, list []T, fields func(*T, Codec) Codec) []byte {
	c := Sending(dst, t)
	c.List(len(list))
	for i := range list {
		c = fields(&list[i], c)
	}
	return c.bytes
}

// DecodeList appends the elements of such a message to dst. It fails with ErrMalformed, or as the checks of the fields
// do, and returns dst unchanged then.
func DecodeList[T any](dst []T, msg []byte, t Type, fields func(*T, Codec) Codec) ([]T, error) {
	c, list := Receiving(msg, t), dst
	for c.List(0); c.More(); {
		list = append(list, *new(T))
		c = fields(&list[len(list)-1], c)
	}
	if err := c.End(); err != nil {
		return dst, err
	}
	return list, nil
}

// Fail makes the received message malformed, unless it is already.
func (c *Codec) Fail(format string, args ...any) {
	if c.reads && c.err == nil {
		c.err = Malformed(c.message, format, args...)
	}
}

// Verify makes the received message invalid if the check of what was read fails.
func (c *Codec) Verify(check func() error) {
	if c.reads && c.err == nil {
		c.err = check()
	}
}

// End returns why the received message is malformed, also if bytes are left.
func (c *Codec) End() error {
	if len(c.bytes) > 0 {
		c.Fail("%d bytes more than its fields have", len(c.bytes))
	}
	return c.err
}

// take reads that many bytes, which it does not copy; none if the message is malformed.
func (c *Codec) take(length int) []byte {
	if length < 0 || length > len(c.bytes) {
		c.Fail("a field of %d bytes, but only %d are left", uint64(length), len(c.bytes))
	}
	if c.err != nil {
		c.bytes = nil
		return nil
	}
	taken := c.bytes[:length:length]
	c.bytes = c.bytes[length:]
	return taken
}

// Integer passes a number.
func Integer[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *Codec, v *T) {
	var raw [8]byte
	octets := raw[8-unsafe.Sizeof(*v):]
	if !c.reads {
		binary.BigEndian.PutUint64(raw[:], uint64(*v))
		c.bytes = append(c.bytes, octets...)
		return
	}
	copy(octets, c.take(len(octets)))
	*v = T(binary.BigEndian.Uint64(raw[:]))
}

// Length passes the length of what follows as a number of type T: own of a message to send. It returns the length.
func Length[T uint8 | uint16 | uint32 | uint64](c *Codec, own int) int {
	n := T(own)
	Integer(c, &n)
	return int(n)
}

// Bit passes a byte that is 0 or 1.
func (c *Codec) Bit(v *bool, name string) {
	b := Bool(*v)
	Integer(c, &b)
	if !c.reads {
		return
	}
	*v = b == 1
	if b > 1 {
		c.Fail("%s is %d instead of 0 or 1", name, b)
	}
}

// Bool returns 1 for true, otherwise 0.
func Bool(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Array passes bytes whose number is fixed.
func (c *Codec) Array(v []byte) {
	if c.reads {
		copy(v, c.take(len(v)))
	} else {
		c.bytes = append(c.bytes, v...)
	}
}

// Zeros passes at most 4 bytes of padding, which must be zero unlike in the reference protocol.
func (c *Codec) Zeros(n int) {
	var padding [4]byte
	c.Array(padding[:n])
	if padding != [4]byte{} {
		c.Fail("padding that is not zero")
	}
}

// Octets passes bytes, which share memory with a received message. The length is for reading.
func (c *Codec) Octets(v *[]byte, length int) {
	if c.reads {
		*v = c.take(length)
	} else {
		c.bytes = append(c.bytes, *v...)
	}
}

// Text is Octets for a text.
func (c *Codec) Text(v *string, length int) {
	if c.reads {
		*v = string(c.take(length))
	} else {
		c.bytes = append(c.bytes, *v...)
	}
}

// Reason passes a code and the text that follows it, of at most limit bytes.
func (c *Codec) Reason(code *AbortCode, text *string, limit int) {
	Integer(c, code)
	c.Zeros(1)
	size := Length[uint16](c, len(*text))
	c.LimitedText(text, size, limit)
}

// LimitedText is Text for one whose length is limited.
func (c *Codec) LimitedText(v *string, length, limit int) {
	c.Text(v, length)
	if c.reads && length > limit {
		c.Fail("a text of %d bytes, limit %d", length, limit)
	}
}

// List passes the length of a list, which must not be empty: own of a message to send.
func (c *Codec) List(own int) {
	c.left = uint32(own)
	Integer(c, &c.left)
	if c.reads && c.left == 0 {
		c.Fail("an empty list")
	}
}

// Depth passes the depth of an entry.
func (c *Codec) Depth(v *int) {
	if depth := Length[uint16](c, *v); c.reads {
		*v = depth
	}
}

// More reports whether a received list has one more element.
func (c *Codec) More() bool {
	if c.err != nil || c.left == 0 {
		return false
	}
	c.left--
	return true
}

// AppendEmpty appends a message without content.
func AppendEmpty(dst []byte, t Type) []byte {
	c := Sending(dst, t)
	c.Zeros(4)
	return c.bytes
}

// DecodeEmpty checks a message without content. It fails with ErrMalformed.
func DecodeEmpty(msg []byte, t Type) error {
	c := Receiving(msg, t)
	c.Zeros(4)
	return c.End()
}

// NameOf returns the name of a value in a table, or what it is with its number.
func NameOf[T ~uint8 | ~int | ~int32](names []string, v T, what string) string {
	if v >= 0 && int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, int(v))
}

// CheckPrintable refuses the name of something that is longer than limit, in bytes, or not printable ASCII.
func CheckPrintable(t Type, of, name string, limit int) error {
	if len(name) > limit {
		return Malformed(t, "a name of %d bytes of the %s, limit %d", len(name), of, limit)
	}
	for _, octet := range []byte(name) {
		if !Printable(octet) {
			return Malformed(t, "byte %#x in the name of the %s", octet, of)
		}
	}
	return nil
}

// Printable reports whether an octet is printable ASCII.
func Printable(octet byte) bool { return octet >= ' ' && octet <= '~' }

// TruncateText cuts a text to limit bytes without splitting a character, and replaces invalid UTF-8.
func TruncateText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:max(0, limit)]
}
