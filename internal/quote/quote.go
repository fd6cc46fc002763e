// Package quote puts text of other origin into messages: what a user typed, or a file or a peer holds. The result is
// one line without control characters, and short, so that the rest of the message can be read.
package quote

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Longest is how many characters of a text are shown, escapes and the ellipsis included.
const Longest = 80

// ellipsis stands for the middle of a text that is too long: a path is recognised by its end, a word by its beginning.
const ellipsis = "..."

// Text returns text in double quotes, escaped as in a Go string, with at most Longest characters between them.
func Text(text string) string { return `"` + bounded(text, inQuotes) + `"` }

// Bare returns text without quotes, for the name of a file in the middle of a sentence: at most Longest characters,
// with unprintable ones escaped.
func Bare(text string) string { return bounded(text, bare) }

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

// bounded leaves out the middle of what is too long. It reads no more of the text than it shows.
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

// start returns the escaped characters from the beginning on for which there is room, and whether that is all of them.
func start(text string, room int, escape func(string) string) (shown string, whole bool) {
	var b strings.Builder
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		escaped := escape(text[:size])
		if room -= utf8.RuneCountInString(escaped); room < 0 {
			return b.String(), false
		}
		b.WriteString(escaped)
		text = text[size:]
	}
	return b.String(), true
}

// end returns the last characters for which there is room.
func end(text string, room int, escape func(string) string) string {
	var shown string
	for text != "" {
		_, size := utf8.DecodeLastRuneInString(text)
		escaped := escape(text[len(text)-size:])
		if room -= utf8.RuneCountInString(escaped); room < 0 {
			break
		}
		shown = escaped + shown
		text = text[:len(text)-size]
	}
	return shown
}
