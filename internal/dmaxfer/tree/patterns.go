package tree

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxPattern is the length of the longest line in a file of patterns, in bytes.
const maxPattern = 64 << 10

// ParsePatterns reads a file of patterns to exclude, in the syntax of .gitignore: blank lines and those that start with
// "#" are ignored, as are spaces at the end unless they are escaped; "!" includes again what an earlier pattern of the
// file excludes. In such a file the last pattern that matches applies, so the rules are returned in the opposite order.
// A line of more than 64 KiB is an error.
func ParsePatterns(from io.Reader) ([]Rule, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxPattern)
	rules := []Rule{}
	number := 1
	for ; lines.Scan(); number++ {
		text := lines.Text()
		if number == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		text = trimSpaces(text)
		if text == "" || text[0] == '#' {
			continue
		}
		pattern, include := strings.CutPrefix(text, "!")
		if include && strings.HasPrefix(pattern, "!") {
			pattern = `\` + pattern
		}
		rule := Rule{Include: include, Pattern: pattern}
		if _, err := NewFilter([]Rule{rule}); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rules = append(rules, rule)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d has more than %d bytes: it is not a file of patterns", number, maxPattern)
	} else if err != nil {
		return nil, err
	}
	slices.Reverse(rules)
	return rules, nil
}

// trimSpaces removes spaces at the end, up to an escaped one.
func trimSpaces(text string) string {
	trimmed := strings.TrimRight(text, " ")
	escapes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if escapes%2 == 1 && len(trimmed) < len(text) {
		trimmed += " "
	}
	return trimmed
}
