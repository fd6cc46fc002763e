package quote

import "math"

// Printable returns text with every unprintable character and every byte that is not UTF-8 escaped, line breaks
// included, so that it stays on one line and sends no control codes to a terminal. It does not shorten, and applying it
// twice changes nothing.
func Printable(text string) string {
	shown, _ := start(text, math.MaxInt, bare)
	return shown
}
