package quote

import (
	"strconv"
	"strings"
)

// Printable returns text with every unprintable character escaped, line breaks included, so that it stays on one line
// and sends no control codes to a terminal. It does not shorten, and applying it twice changes nothing.
func Printable(text string) string {
	var safe strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			safe.WriteRune(r)
			continue
		}
		safe.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return safe.String()
}
