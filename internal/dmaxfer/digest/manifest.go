package digest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Entry is one line of a manifest: a file and its expected digest.
type Entry struct {
	Sum  Sum
	Path string // as written in the manifest; the caller knows what it is relative to
}

// ParseManifest reads lines of the form "ALGORITHM:HEX PATH", and the output of sha256sum: "HEX PATH" or "HEX *PATH",
// with a leading backslash if the path contains escapes. It ignores empty lines and lines that start with #. An error
// contains the line number.
func ParseManifest(text string) ([]Entry, error) {
	var entries []Entry
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		entry, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

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
