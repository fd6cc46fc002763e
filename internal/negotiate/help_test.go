package negotiate

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
)

// number is a uint64 in a JSON string, decimal or 0x: JSON's own numbers are exact only up to 2^53.
type number uint64

func (n *number) UnmarshalText(text []byte) error {
	value, err := strconv.ParseUint(string(text), 0, 64)
	*n = number(value)
	return err
}

// octets are bytes in hexadecimal, with spaces between the fields.
type octets []byte

func (o *octets) UnmarshalText(text []byte) error {
	value, err := hex.DecodeString(strings.ReplaceAll(string(text), " ", ""))
	*o = value
	return err
}

func readVectors(t testing.TB, name string, into any) {
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

func readProtocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func wantBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("got  % x\nwant % x", got, want)
	}
}

func wantMalformed(t *testing.T, got any, err error) {
	t.Helper()
	var failure *Error
	if got != nil || !errors.Is(err, ErrMalformed) || !errors.As(err, &failure) || failure.Detail == "" {
		t.Fatalf("got %+v and %v, want nil and ErrMalformed with a detail", got, err)
	}
}

func must(t *testing.T) func([]byte, error) []byte {
	return func(msg []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return msg
	}
}

func counted(msg []byte) []byte { return append([]byte{byte(len(msg))}, msg...) }

// takeCounted removes a length byte and that many bytes, or as many as there are, from the script.
func takeCounted(script []byte) (taken, rest []byte) {
	if len(script) == 0 {
		return nil, nil
	}
	end := min(1+int(script[0]), len(script))
	return script[1:end], script[end:]
}

func decoded[T any](value T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return value, nil
}

// flagBits returns the flags with these names, the first of which is bit 0.
func flagBits(t testing.TB, known, names []string) (bits uint32) {
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

// named returns the value of a small type with this name.
func named[T interface {
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

// present returns bytes that are not nil.
func present(o octets) []byte { return append([]byte{}, o...) }

// signed is an int64 in a JSON string.
type signed int64

func (n *signed) UnmarshalText(text []byte) error {
	value, err := strconv.ParseInt(string(text), 0, 64)
	*n = signed(value)
	return err
}

// isFailureCode reports whether the byte is the code AbortFailure.
func isFailureCode(msg []byte, at int) bool {
	place := map[Type]int{TypeAbort: 4, TypeFailure: 8}[TypeOf(msg)]
	return place > 0 && at == place && msg[at] == byte(AbortFailure)
}

func wantCheck(t *testing.T, how string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", how, err, want)
	}
}

func second[T any](_ T, err error) error { return err }

type gridKey [3]string

func readGridFile(t *testing.T, name string) map[gridKey]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	grid := map[gridKey]string{}
	for _, table := range strings.Split(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(table), "\n")
		head := strings.Fields(lines[0])
		for _, line := range lines[1:] {
			cells := strings.Fields(line)
			if len(cells) != len(head) {
				t.Fatalf("%d cells instead of %d: %s", len(cells), len(head), line)
			}
			for i, cell := range cells[1:] {
				grid[gridKey{head[0], head[i+1], cells[0]}] = cell
			}
		}
	}
	return grid
}

// appendType appends the type of a message, and the rest of it.
func appendType(dst []byte, t Type, rest ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(t)), rest...)
}

// checkVectorFiles expects the files of vectors in the package's directory to be these, and docs/PROTOCOL.md to cite each.
func checkVectorFiles(t *testing.T, files ...string) {
	t.Helper()
	specification := readProtocol(t)
	entries, err := os.ReadDir(filepath.Join("testdata", "vectors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(files, entry.Name()) {
			t.Errorf("no test reads %s", entry.Name())
		}
		if !strings.Contains(specification, "`"+entry.Name()+"`") {
			t.Errorf("docs/PROTOCOL.md does not cite %s", entry.Name())
		}
	}
}

type vectorSent struct {
	From string `json:"from"`
	Hex  octets `json:"hex"`
}
