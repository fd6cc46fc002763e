// Package wiretest reads the vectors and the state tables of protocols, and has what their tests share.
package wiretest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Number is a uint64 in a JSON string, decimal or 0x: JSON's own numbers are exact only up to 2^53.
type Number uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Number) UnmarshalText(text []byte) error {
	value, err := strconv.ParseUint(string(text), 0, 64)
	*n = Number(value)
	return err
}

// Octets are bytes in hexadecimal, with spaces between the fields.
type Octets []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Octets) UnmarshalText(text []byte) error {
	value, err := hex.DecodeString(strings.ReplaceAll(string(text), " ", ""))
	*o = value
	return err
}

// ReadVectors reads a file of vectors of the package, without fields that are unknown.
func ReadVectors(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// ReadProtocol returns the text of the pages in docs/internals/protocol. The working directory is the one of a package
// of the module.
func ReadProtocol(t *testing.T) string {
	t.Helper()
	for up := ".."; len(up) < 20; up = filepath.Join(up, "..") {
		pages, err := filepath.Glob(filepath.Join(up, "docs", "internals", "protocol", "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		if len(pages) > 0 {
			return all.String()
		}
	}
	t.Fatal("there are no pages in docs/internals/protocol")
	return ""
}

// WantBytes fails the test unless the bytes are equal.
func WantBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("got  % x\nwant % x", got, want)
	}
}

// WantMalformed fails the test unless nothing was decoded, and the error is an ErrMalformed with a detail.
func WantMalformed(t *testing.T, got any, err error) {
	t.Helper()
	var failure *wire.Error
	if got != nil || !errors.Is(err, wire.ErrMalformed) || !errors.As(err, &failure) || failure.Detail == "" {
		t.Fatalf("got %+v and %v, want nil and ErrMalformed with a detail", got, err)
	}
}

// Must returns a function that returns a message, or fails the test with the error.
func Must(t *testing.T) func([]byte, error) []byte {
	return func(msg []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return msg
	}
}

// Counted returns a message of at most 255 bytes after its length in one byte.
func Counted(msg []byte) []byte { return append([]byte{byte(len(msg))}, msg...) }

// TakeCounted removes a length byte and that many bytes, or as many as there are, from the script.
func TakeCounted(script []byte) (taken, rest []byte) {
	if len(script) == 0 {
		return nil, nil
	}
	end := min(1+int(script[0]), len(script))
	return script[1:end], script[end:]
}

// Decoded returns the value, or nil with an error.
func Decoded[T any](value T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return value, nil
}

// FlagBits returns the flags with these names; known has the names from bit 0 on.
func FlagBits(t testing.TB, known, names []string) (bits uint32) {
	t.Helper()
	for _, name := range names {
		bit := slices.Index(known, name)
		if bit < 0 {
			t.Fatalf("unknown flag %q", name)
		}
		bits |= 1 << bit
	}
	return bits
}

// Named returns the value of a small type with this name.
func Named[T interface {
	~uint8
	String() string
}](t testing.TB, name string, largest T) T {
	t.Helper()
	for value := T(0); value <= largest; value++ {
		if value.String() == name {
			return value
		}
	}
	t.Fatalf("nothing is called %q", name)
	return 0
}

// Present returns bytes that are not nil.
func Present(o Octets) []byte { return append([]byte{}, o...) }

// Signed is an int64 in a JSON string.
type Signed int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Signed) UnmarshalText(text []byte) error {
	value, err := strconv.ParseInt(string(text), 0, 64)
	*n = Signed(value)
	return err
}

// IsFailureCode reports whether the byte is the code AbortFailure.
func IsFailureCode(msg []byte, at int) bool {
	place := map[wire.Type]int{wire.TypeAbort: 4, wire.TypeFailure: 8}[wire.TypeOf(msg)]
	return place > 0 && at == place && msg[at] == byte(wire.AbortFailure)
}

// WantCheck reports an error to the test that is not, or does not wrap, the wanted one. how says what was checked.
func WantCheck(t *testing.T, how string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", how, err, want)
	}
}

// Second returns the second result of a call.
func Second[T any](_ T, err error) error { return err }

// GridKey is the table, the column and the row of a cell in a file of state tables.
type GridKey [3]string

// ReadGridFile reads a file of state tables of the package. The head of a table begins with its name.
func ReadGridFile(t *testing.T, name string) map[GridKey]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	grid := map[GridKey]string{}
	for _, table := range strings.Split(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(table), "\n")
		head := strings.Fields(lines[0])
		for _, line := range lines[1:] {
			cells := strings.Fields(line)
			if len(cells) != len(head) {
				t.Fatalf("%d cells instead of %d: %s", len(cells), len(head), line)
			}
			for i, cell := range cells[1:] {
				grid[GridKey{head[0], head[i+1], cells[0]}] = cell
			}
		}
	}
	return grid
}

// AppendType appends the type of a message, and the rest of it.
func AppendType(dst []byte, t wire.Type, rest ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(t)), rest...)
}

// CheckVectorFiles expects the files of vectors of the package to be these, and README.md above it to list each.
func CheckVectorFiles(t *testing.T, files ...string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join("testdata", "vectors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(files, entry.Name()) {
			t.Errorf("no test reads %s", entry.Name())
		}
		if !strings.Contains(string(readme), "`"+entry.Name()+"`") {
			t.Errorf("internal/negotiate/README.md does not list %s", entry.Name())
		}
	}
}

// VectorSent is a message of a conversation in a file of vectors.
type VectorSent struct {
	From string `json:"from"`
	Hex  Octets `json:"hex"`
}
