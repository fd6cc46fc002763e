package quote

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns JSON of the same meaning without characters that control a terminal or change the order of others. JSON
// itself only forbids those below U+0020 in strings, and permits some as space between values, which stay.
func JSON(value []byte) []byte {
	if !bytes.ContainsFunc(value, hidden) {
		return value
	}
	var safe []byte
	for _, r := range string(value) {
		if !hidden(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}

func hidden(r rune) bool { return !strconv.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' }

// JSONWriter passes on what is written to it as JSON returns it. Each Write has whole characters, as an encoder writes
// them.
type JSONWriter struct{ To io.Writer }

// Write implements io.Writer.
func (w JSONWriter) Write(value []byte) (int, error) {
	if _, err := w.To.Write(JSON(value)); err != nil {
		return 0, err
	}
	return len(value), nil
}
