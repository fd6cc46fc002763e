package tree

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Rule includes or excludes the entries that match a pattern. The syntax is as in a line of a .gitignore file, without
// comments and negation: "*", "?" and "[a-z]" match within a name, and "**" between slashes any number of directories.
// A pattern with a slash at its beginning or in the middle is matched against the path below the root, any other
// against the name. A slash at the end matches directories only.
type Rule struct {
	Include bool
	Pattern string
}

// Filter decides which entries are sent: the first rule that matches an entry applies to it, and without one it is
// sent. Entries below an excluded directory are not looked at. A nil Filter excludes nothing. It may be used
// concurrently.
type Filter struct{ rules []rule }

// rule is a Rule as a pattern of package doublestar.
type rule struct {
	include       bool
	directoryOnly bool
	wholePath     bool
	pattern       string
	bytewise      string // the pattern for text that is not UTF-8, with a rune for each byte
	valid         bool   // the pattern is UTF-8
}

// NewFilter returns the filter with these rules. A malformed pattern is an error that quotes it.
func NewFilter(rules []Rule) (*Filter, error) {
	f := &Filter{rules: make([]rule, len(rules))}
	for i, r := range rules {
		var err error
		if f.rules[i], err = compile(r); err != nil {
			return nil, fmt.Errorf("malformed pattern %s: %w", quote.Text(r.Pattern), err)
		}
	}
	return f, nil
}

var errMatchesNothing = errors.New("it matches nothing")

func compile(from Rule) (rule, error) {
	text, directoryOnly := strings.CutSuffix(from.Pattern, "/")
	wholePath := strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	switch {
	case text == "":
		return rule{}, errMatchesNothing
	case strings.HasPrefix(text, "!"):
		return rule{}, errors.New(`it starts with "!": include the rest of it, or write "\!" for such a name`)
	}
	pattern, err := translate(text)
	if err != nil {
		return rule{}, err
	}
	if strings.HasSuffix(pattern, "/**") {
		pattern += "/*" // otherwise it would match the directory itself
	}
	return rule{
		include: from.Include, directoryOnly: directoryOnly, wholePath: wholePath,
		pattern: pattern, bytewise: runesOfBytes(pattern), valid: utf8.ValidString(pattern),
	}, nil
}

// translate returns a gitignore pattern as one of doublestar, where braces are special, "***" has no meaning, "]" is
// never a literal at the beginning of a class, and a negated class matches a slash.
func translate(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return "", errors.New(`it ends with "\"`)
			}
			out.WriteString(text[i-1 : i+1])
		case '*':
			stars := len(text[i:]) - len(strings.TrimLeft(text[i:], "*"))
			end := i + stars
			if isName := (i == 0 || text[i-1] == '/') && (end == len(text) || text[end] == '/'); isName && stars > 1 {
				out.WriteByte('*')
			}
			out.WriteByte('*')
			i = end - 1
		case '{', '}':
			out.WriteString(`\` + text[i:i+1])
		case '[':
			length, err := translateClass(text[i:], &out)
			if err != nil {
				return "", err
			}
			i += length - 1
		default:
			out.WriteByte(c)
		}
	}
	if !doublestar.ValidatePattern(out.String()) {
		return "", doublestar.ErrBadPattern
	}
	return out.String(), nil
}

// translateClass translates a class at the beginning of text, and returns its length.
func translateClass(text string, out *strings.Builder) (length int, err error) {
	out.WriteByte('[')
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		out.WriteString("!/")
		i++
	}
	for start := i; i < len(text); i++ {
		switch {
		case text[i] == ']' && i > start:
			out.WriteByte(']')
			return i + 1, nil
		case text[i] == ']':
			out.WriteString(`\]`)
		case strings.HasPrefix(text[i:], "[:"):
			return 0, errors.New(`classes such as "[:alpha:]" are not supported: write [A-Za-z]`)
		case text[i] == '\\' && i+1 < len(text):
			out.WriteString(text[i : i+2])
			i++
		default:
			out.WriteByte(text[i])
		}
	}
	return 0, errors.New(`it has "[" without "]"`)
}

// Excludes reports whether the entry at a path below the root is left out. It does not look at the directories above.
func (f *Filter) Excludes(path string, isDirectory bool) bool {
	return f != nil && f.decide(path, path[strings.LastIndexByte(path, '/')+1:], isDirectory)
}

// excludes reports whether an entry is left out.
func (f *Filter) excludes(entry *Entry, isDirectory bool) bool {
	return f != nil && f.decide(entry.Path(), entry.Name, isDirectory)
}

// decide reports whether the entry at a path, which ends with this name, is left out.
func (f *Filter) decide(path, name string, isDirectory bool) bool {
	for i := range f.rules {
		r := &f.rules[i]
		if r.directoryOnly && !isDirectory {
			continue
		}
		if r.wholePath && r.matches(path) || !r.wholePath && r.matches(name) {
			return !r.include
		}
	}
	return false
}

// matches compares runes, or bytes if there is one that is not part of a rune: doublestar takes all of those for equal.
func (r *rule) matches(text string) bool {
	if r.valid && utf8.ValidString(text) {
		return doublestar.MatchUnvalidated(r.pattern, text)
	}
	return doublestar.MatchUnvalidated(r.bytewise, runesOfBytes(text))
}

// runesOfBytes returns a string with a rune for each byte.
func runesOfBytes(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}
