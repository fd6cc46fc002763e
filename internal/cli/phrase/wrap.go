package phrase

import "strings"

// Wrap breaks a text at blanks into lines of at most width bytes. A word that is longer has a line of its own.
func Wrap(text string, width int) (lines []string) {
	for len(text) > width {
		blank := strings.LastIndexByte(text[:width+1], ' ')
		if blank < 0 {
			blank = strings.IndexByte(text, ' ')
		}
		if blank < 0 {
			break
		}
		lines, text = append(lines, strings.TrimRight(text[:blank], " ")), strings.TrimLeft(text[blank:], " ")
	}
	return append(lines, text)
}
