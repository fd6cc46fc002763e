package negotiate

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

const (
	typeSize = 4
	listSize = 8 // type and count
)

// codec passes over the fields of one message in their order: it appends them to a message to send, or reads them from
// a received one. The layout of a message is thus in one place, its method fields. Numbers are big-endian, except for
// the type. Such a method takes and returns the codec as a value, so that it does not escape to the heap.
type codec struct {
	message Type
	dst     []byte // of a message to send: what it is appended to
	bytes   []byte // of a message to send: what it has so far; of a received one: what is left
	reads   bool
	left    uint32 // elements of the list that are left
	err     error  // the first one about a received message
}

// sending returns the codec of a message to append to dst.
func sending(dst []byte, t Type) codec {
	return codec{message: t, dst: dst, bytes: binary.LittleEndian.AppendUint32(dst, uint32(t))}
}

// receiving returns the codec of a received message, which must have this type.
func receiving(msg []byte, t Type) codec {
	c := codec{message: t, reads: true}
	switch got := TypeOf(msg); {
	case len(msg) < typeSize:
		c.err = malformed(0, "%d bytes, too short for a type", len(msg))
	case got != t:
		c.err = malformed(got, "not a message of type %s", t)
	default:
		c.bytes = msg[typeSize:]
	}
	return c
}

// appending and reading are the same for a part of a message.
func appending(dst []byte, t Type) codec { return codec{message: t, dst: dst, bytes: dst} }

func reading(part []byte, t Type) codec { return codec{message: t, bytes: part, reads: true} }

// messageType returns the type of the message.
func (c *codec) messageType() Type { return c.message }

// all returns the bytes of a message to send, after what it is appended to.
func (c *codec) all() []byte { return c.bytes }

// failure returns why a received message is malformed so far.
func (c *codec) failure() error { return c.err }

// encode appends a message, decode is the reverse. It fails with ErrMalformed and returns the zero value then.
func encode[T any](dst []byte, t Type, m *T, fields func(*T, codec) codec) []byte {
	return fields(m, sending(dst, t)).bytes
}

func decode[T any](msg []byte, t Type, fields func(*T, codec) codec) (m T, err error) {
	c := fields(&m, receiving(msg, t))
	if err := c.end(); err != nil {
		return *new(T), err
	}
	return m, nil
}

// encodeList appends a message that consists of a list, decodeList appends its elements to dst. It fails with
// ErrMalformed and returns dst unchanged then.
func encodeList[T any](dst []byte, t Type, list []T, fields func(*T, codec) codec) []byte {
	c := sending(dst, t)
	c.list(len(list))
	for i := range list {
		c = fields(&list[i], c)
	}
	return c.bytes
}

func decodeList[T any](dst []T, msg []byte, t Type, fields func(*T, codec) codec) ([]T, error) {
	c, list := receiving(msg, t), dst
	for c.list(0); c.more(); {
		list = append(list, *new(T))
		c = fields(&list[len(list)-1], c)
	}
	if err := c.end(); err != nil {
		return dst, err
	}
	return list, nil
}

// fail makes the received message malformed, unless it is already.
func (c *codec) fail(format string, args ...any) {
	if c.reads && c.err == nil {
		c.err = malformed(c.message, format, args...)
	}
}

// verify makes the received message invalid if the check of what was read fails.
func (c *codec) verify(check func() error) {
	if c.reads && c.err == nil {
		c.err = check()
	}
}

// end returns why the received message is malformed, also if bytes are left.
func (c *codec) end() error {
	if len(c.bytes) > 0 {
		c.fail("%d bytes more than its fields have", len(c.bytes))
	}
	return c.err
}

// take reads that many bytes, which it does not copy; none if the message is malformed.
func (c *codec) take(length int) []byte {
	if length < 0 || length > len(c.bytes) {
		c.fail("a field of %d bytes, but only %d are left", uint64(length), len(c.bytes))
	}
	if c.err != nil {
		c.bytes = nil
		return nil
	}
	taken := c.bytes[:length:length]
	c.bytes = c.bytes[length:]
	return taken
}

// integer passes a number.
func integer[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *codec, v *T) {
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

// length passes the length of what follows as a number of type T: own of a message to send. It returns the length.
func length[T uint8 | uint16 | uint32 | uint64](c *codec, own int) int {
	n := T(own)
	integer(c, &n)
	return int(n)
}

// bit passes a byte that is 0 or 1.
func (c *codec) bit(v *bool, name string) {
	b := wireBool(*v)
	integer(c, &b)
	if !c.reads {
		return
	}
	*v = b == 1
	if b > 1 {
		c.fail("%s is %d instead of 0 or 1", name, b)
	}
}

func wireBool(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// array passes bytes of which there are always as many.
func (c *codec) array(v []byte) {
	if c.reads {
		copy(v, c.take(len(v)))
	} else {
		c.bytes = append(c.bytes, v...)
	}
}

// zeros passes at most 4 bytes of padding, which must be zero unlike in the reference protocol.
func (c *codec) zeros(n int) {
	var padding [4]byte
	c.array(padding[:n])
	if padding != [4]byte{} {
		c.fail("padding that is not zero")
	}
}

// octets passes bytes, which share memory with a received message. The length is for reading.
func (c *codec) octets(v *[]byte, length int) {
	if c.reads {
		*v = c.take(length)
	} else {
		c.bytes = append(c.bytes, *v...)
	}
}

// text is octets for a text.
func (c *codec) text(v *string, length int) {
	if c.reads {
		*v = string(c.take(length))
	} else {
		c.bytes = append(c.bytes, *v...)
	}
}

// reason passes a code, and the length of the text that follows it.
func (c *codec) reason(code *AbortCode, text *string, limit int) {
	integer(c, code)
	c.zeros(1)
	size := length[uint16](c, len(*text))
	c.limitedText(text, size, limit)
}

// limitedText is text for one whose length is limited.
func (c *codec) limitedText(v *string, length, limit int) {
	c.text(v, length)
	if c.reads && length > limit {
		c.fail("a text of %d bytes, limit %d", length, limit)
	}
}

// list passes the length of a list, which must not be empty: own of a message to send.
func (c *codec) list(own int) {
	c.left = uint32(own)
	integer(c, &c.left)
	if c.reads && c.left == 0 {
		c.fail("an empty list")
	}
}

// depth passes the depth of an entry.
func (c *codec) depth(v *int) {
	if depth := length[uint16](c, *v); c.reads {
		*v = depth
	}
}

// more reports whether a received list has one more element.
func (c *codec) more() bool {
	if c.err != nil || c.left == 0 {
		return false
	}
	c.left--
	return true
}

// appendEmpty appends a message without content, decodeEmpty is the reverse.
func appendEmpty(dst []byte, t Type) []byte {
	c := sending(dst, t)
	c.zeros(4)
	return c.bytes
}

func decodeEmpty(msg []byte, t Type) error {
	c := receiving(msg, t)
	c.zeros(4)
	return c.end()
}

// nameOf returns the name of a value in a table, or what it is with its number.
func nameOf[T ~uint8 | ~int | ~int32](names []string, v T, what string) string {
	if v >= 0 && int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, int(v))
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

// truncateText does not split characters.
func truncateText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:max(0, limit)]
}
