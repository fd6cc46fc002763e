package digest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Entry is one line of a manifest: a file and its expected digest.
type Entry struct {
	Sum  Sum
	Path string // as written in the manifest; the caller knows what it is relative to
}

// maxLine is longer than any line about a file, in bytes. It bounds what is read of a file that is not a manifest.
const maxLine = 64 << 10

// Manifest reads a manifest entry by entry, so that one of any size needs little memory. It is for one goroutine.
type Manifest struct {
	lines  *bufio.Reader
	number int // of the last line
}

// ReadManifest returns the reader of a manifest: lines of the form "ALGORITHM:HEX PATH", and the output of sha256sum:
// "HEX PATH" or "HEX *PATH", with a leading backslash if the path contains escapes. Empty lines and lines that start
// with # are ignored.
func ReadManifest(from io.Reader) *Manifest {
	return &Manifest{lines: bufio.NewReaderSize(from, maxLine)}
}

// Next returns the next entry, or io.EOF at the end. An invalid line is a *LineError; other errors are errors
// of the reader.
func (m *Manifest) Next() (Entry, error) {
	for {
		line, err := m.lines.ReadSlice('\n')
		m.number++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return Entry{}, &LineError{m.number, fmt.Errorf("longer than %d bytes", maxLine)}
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return Entry{}, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		entry, err := parseEntry(string(line))
		if err != nil {
			return Entry{}, &LineError{m.number, err}
		}
		return entry, nil
	}
}

// LineError is what is wrong with a line of a manifest.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error returns the message with the line number.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the error without the line number.
func (e *LineError) Unwrap() error { return e.Err }

// String returns the manifest line of the entry, without the line end.
func (e Entry) String() string {
	escaped := escapes.Replace(e.Path)
	if escaped != e.Path {
		return `\` + e.Sum.String() + "  " + escaped
	}
	return e.Sum.String() + "  " + e.Path
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func parseEntry(line string) (Entry, error) {
	line, escaped := strings.CutPrefix(line, `\`)
	digits, path, found := strings.Cut(line, " ")
	if !found || len(path) < 2 || path[0] != ' ' && path[0] != '*' || strings.ContainsRune(path, 0) {
		return Entry{}, errors.New("not a digest, two spaces and a path")
	}
	path = path[1:]
	if escaped {
		var err error
		if path, err = unescape(path); err != nil {
			return Entry{}, err
		}
	}
	sum, err := parseEntrySum(digits)
	return Entry{Sum: sum, Path: path}, err
}

// parseEntrySum also accepts a bare SHA-256 digest, as printed by sha256sum.
func parseEntrySum(text string) (Sum, error) {
	if !strings.Contains(text, ":") {
		if len(text) != hex.EncodedLen(SHA256.Size()) {
			return Sum{}, errors.New("a digest without its algorithm; give ALGORITHM:HEX, or the 64 digits of sha256")
		}
		text = SHA256.String() + ":" + text
	}
	return ParseSum(text)
}

func unescape(path string) (string, error) {
	var plain strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '\\' {
			plain.WriteByte(path[i])
			continue
		}
		i++
		if i == len(path) || !strings.ContainsRune(`\nr`, rune(path[i])) {
			return "", errors.New(`invalid escape in the path, not one of \\, \n and \r`)
		}
		plain.WriteByte(map[byte]byte{'\\': '\\', 'n': '\n', 'r': '\r'}[path[i]])
	}
	return plain.String(), nil
}
