package share

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

// IsPattern reports whether a path has a "*", "?" or "[" that no "\" escapes, so that it may name several entries.
func IsPattern(path string) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// Pattern names entries of a share by a path with patterns: "*", "?" and "[a-z]" match within a name, "**" between
// slashes any number of directories, and "\" escapes. As in a shell, a name that begins with a dot is matched only by a
// name of the pattern that does, too.
type Pattern struct {
	Base      string // path of the directory that the entries are below, without patterns and escapes
	Recursive bool   // they may be deeper than in it

	whole  *tree.Filter // of paths below Base; nil: without any "*", "?" and "[", Base is what is named
	hidden *tree.Filter // of names that begin with a dot; nil: there are none
}

// ParsePattern parses a path as CleanPath returns it. A malformed pattern is an error that quotes it.
func ParsePattern(path string) (Pattern, error) {
	var p Pattern
	names := strings.Split(strings.TrimSuffix(path, "/"), "/")
	first := 0
	for first < len(names) && !IsPattern(names[first]) {
		names[first] = unescaped(names[first])
		first++
	}
	p.Base = strings.Join(names[:first], "/")
	if first == len(names) {
		return p, nil
	}
	rest := names[first:]
	p.Recursive = len(rest) > 1 || rest[0] == "**"
	pattern := "/" + strings.Join(rest, "/")
	if strings.HasSuffix(path, "/") {
		pattern += "/"
	}
	var err error
	if p.whole, err = tree.NewFilter([]tree.Rule{{Pattern: pattern}}); err != nil {
		return p, err
	}
	var hidden []tree.Rule
	for _, name := range rest {
		if strings.HasPrefix(strings.TrimPrefix(name, `\`), ".") {
			hidden = append(hidden, tree.Rule{Pattern: name})
		}
	}
	if hidden != nil {
		p.hidden, err = tree.NewFilter(hidden)
	}
	return p, err
}

// Matches reports whether the pattern names the entry at a path below Base.
func (p *Pattern) Matches(path string, isDirectory bool) bool {
	if !p.whole.Excludes(path, isDirectory) {
		return false
	}
	for name := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(name, ".") && !p.hidden.Excludes(name, true) {
			return false
		}
	}
	return true
}

// Several reports whether the pattern may name several entries.
func (p *Pattern) Several() bool { return p.whole != nil }

func unescaped(name string) string {
	var plain strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '\\' && i+1 < len(name) {
			i++
		}
		plain.WriteByte(name[i])
	}
	return plain.String()
}
