package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Public is an Ed25519 public key. Two are equal if == says so.
type Public [ed25519.PublicKeySize]byte

// LinePrefix is what the line of a public key starts with. It names the version of the format and the kind of key.
const LinePrefix = "dma-copy-v1:"

// MaxLine is the maximum number of bytes in the line of a public key, with its comment.
const MaxLine = 512

// encoding rejects a line whose last character has bits that belong to no byte, so that each key has one line.
var encoding = base64.RawURLEncoding.Strict()

// String returns the key as one word of text, from which ParsePublic makes it again.
func (p Public) String() string { return LinePrefix + encoding.EncodeToString(p[:]) }

// Line returns the key as one line of text, with a comment if it is not empty. It fails if ParsePublic would refuse
// the line.
func (p Public) Line(comment string) (string, error) {
	line := p.String()
	if comment != "" {
		line += " " + comment
	}
	_, _, err := ParsePublic(line)
	return line, err
}

// ParsePublic returns the key and the comment of one line of text: the key as String returns it, then, after blanks, a
// comment of printable characters. Blanks around the line are ignored.
func ParsePublic(line string) (key Public, comment string, err error) {
	if len(line) > MaxLine {
		return Public{}, "", fmt.Errorf("public key: the line has %d bytes, more than %d", len(line), MaxLine)
	}
	line = strings.Trim(line, " \t\r\n")
	word, comment, _ := strings.Cut(line, " ")
	digits, is := strings.CutPrefix(word, LinePrefix)
	if !is {
		return Public{}, "", fmt.Errorf("public key: %s does not start with %s", quote.Text(line), LinePrefix)
	}
	bytes, err := encoding.DecodeString(digits)
	if err != nil || strings.ContainsAny(digits, "\r\n") {
		return Public{}, "", fmt.Errorf("public key: %s is not base64url", quote.Text(digits))
	}
	if len(bytes) != len(key) {
		return Public{}, "", fmt.Errorf("public key: %d bytes instead of %d (is the line complete?)",
			len(bytes), len(key))
	}
	copy(key[:], bytes)
	comment = strings.Trim(comment, " \t")
	if !utf8.ValidString(comment) || quote.Printable(comment) != comment {
		return Public{}, "", errors.New("public key: the comment has characters that are not printable")
	}
	return key, comment, key.Check()
}

// PublicFrom returns the key of package ed25519, if it is one that Check accepts.
func PublicFrom(key ed25519.PublicKey) (Public, error) {
	var p Public
	if len(key) != len(p) {
		return Public{}, fmt.Errorf("public key: %d bytes instead of %d", len(key), len(p))
	}
	copy(p[:], key)
	return p, p.Check()
}

// ErrWeak means that a public key belongs to no private key: anybody can make signatures that it verifies.
var ErrWeak = errors.New("public key: a point of small order, for which anybody can sign")

// smallOrder has the y coordinates of the points of small order on edwards25519, little-endian, each in all forms that
// a verifier may accept. The sign of x, the highest bit, is cleared.
var smallOrder = [...]string{
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	"\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0" +
		"\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05",
	"\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f" +
		"\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a",
	"\xec\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
	"\xed\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
	"\xee\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
}

// Check returns ErrWeak if the key would identify nobody, such as one of zeros only.
func (p Public) Check() error {
	y := p
	y[len(y)-1] &= 0x7f
	for _, weak := range smallOrder {
		if string(y[:]) == weak {
			return ErrWeak
		}
	}
	return nil
}
