// Package quote prepares text of a user, a file or a peer for messages, and JSON for output: no character of it
// controls a terminal. The package does not interpret the text.
package quote

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Longest is the maximum number of characters shown of a text, including escapes and the ellipsis.
const Longest = 80

// ellipsis replaces the middle of a text that is too long, because the end of a path and the beginning of a word
// identify it.
const ellipsis = "..."

// Text returns text in double quotes, escaped as in a Go string, with at most Longest characters between them.
func Text(text string) string { return `"` + bounded(text, inQuotes) + `"` }

// Bare returns text without quotes and with unprintable characters escaped, at most Longest characters, for file
// names inside a sentence.
func Bare(text string) string { return bounded(text, bare) }

// Path returns a file name on one line from which all its bytes can be restored: unprintable characters, bytes that are
// not UTF-8 and backslashes are escaped as in a Go string. Unlike Bare it does not shorten.
func Path(name string) string {
	shown, _ := start(name, math.MaxInt, func(character string) string {
		if character == `\` {
			return `\\`
		}
		return bare(character)
	})
	return shown
}

func inQuotes(character string) string {
	quoted := strconv.Quote(character)
	return quoted[1 : len(quoted)-1]
}

func bare(character string) string {
	if r, size := utf8.DecodeRuneInString(character); r == utf8.RuneError && size == 1 || !strconv.IsPrint(r) {
		return inQuotes(character)
	}
	return character
}

// bounded escapes text and leaves out its middle if the result is longer than Longest. It reads no more of the text
// than it shows.
func bounded(text string, escape func(character string) string) string {
	const tail = (Longest - len(ellipsis)) / 2
	const head = Longest - len(ellipsis) - tail
	shown, whole := start(text, Longest, escape)
	if whole {
		return shown
	}
	shown, _ = start(text, head, escape)
	return shown + ellipsis + end(text, tail, escape)
}

// start returns the first escaped characters that fit into limit, and whether these are all.
func start(text string, limit int, escape func(string) string) (shown string, whole bool) {
	var b strings.Builder
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		escaped := escape(text[:size])
		if limit -= utf8.RuneCountInString(escaped); limit < 0 {
			return b.String(), false
		}
		b.WriteString(escaped)
		text = text[size:]
	}
	return b.String(), true
}

// end returns the last escaped characters that fit into limit.
func end(text string, limit int, escape func(string) string) string {
	var shown string
	for text != "" {
		_, size := utf8.DecodeLastRuneInString(text)
		escaped := escape(text[len(text)-size:])
		if limit -= utf8.RuneCountInString(escaped); limit < 0 {
			break
		}
		shown = escaped + shown
		text = text[:len(text)-size]
	}
	return shown
}

// Printable returns text with every unprintable character and every byte that is not UTF-8 escaped, line breaks
// included, so that it stays on one line and sends no control codes to a terminal. It does not shorten, and applying it
// twice changes nothing.
func Printable(text string) string {
	shown, _ := start(text, math.MaxInt, bare)
	return shown
}
