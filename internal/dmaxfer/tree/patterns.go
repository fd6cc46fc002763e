package tree

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/lines"
)

// maxPattern is the length of the longest line in a file of patterns, in bytes.
const maxPattern = 64 << 10

// ParsePatterns reads a file of patterns to exclude, in the syntax of .gitignore: blank lines and those that start with
// "#" are ignored, as are spaces at the end unless they are escaped; "!" includes again what an earlier pattern of the
// file excludes. As for git, a line such as "/" or "!", which matches nothing, has no effect. In such a file the last
// pattern that matches applies, so the rules are returned in the opposite order. A line of more than 64 KiB is an
// error.
func ParsePatterns(from io.Reader) ([]Rule, error) {
	rules := []Rule{}
	number, err := lines.Each(from, '\n', maxPattern, func(number int, line string) error {
		text := trimSpaces(line)
		if text == "" || text[0] == '#' {
			return nil
		}
		pattern, include := strings.CutPrefix(text, "!")
		if include && strings.HasPrefix(pattern, "!") {
			pattern = `\` + pattern
		}
		rule := Rule{Include: include, Pattern: pattern}
		_, err := NewFilter([]Rule{rule})
		switch {
		case err == nil:
			rules = append(rules, rule)
		case !errors.Is(err, errMatchesNothing):
			return fmt.Errorf("line %d: %w", number, err)
		}
		return nil
	})
	if errors.Is(err, lines.ErrTooLong) {
		err = fmt.Errorf("line %d has more than %d bytes: it is not a file of patterns", number, maxPattern)
	}
	if err != nil {
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
