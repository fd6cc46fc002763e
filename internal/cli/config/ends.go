package config

import (
	"path"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Ends are both ends of one copy of push, pull or sync. Where it lands follows from the spelling of source and target
// alone: the same command means the same again, whatever the first run has created.
type Ends struct {
	Local     string
	Remote    share.Remote
	Directory bool // the source is meant by its content, so it has to be a directory
}

// Ends returns the ends of each copy, for settings with one target. It refuses sources that cannot land there.
func (s *Transfer) Ends() ([]Ends, error) {
	sources, text, target := s.Local, "", ""
	if s.Sends {
		text, target = s.Remote[0].String(), s.Remote[0].Path
	} else {
		sources, text, target = nil, s.Local[0], s.Local[0]
		for _, remote := range s.Remote {
			sources = append(sources, remote.Share+"/"+remote.Path)
		}
	}
	isPattern := func(source string) bool { return s.Kind == Pull && !s.Expanded && share.IsPattern(source) }
	several := len(sources) > 1 || isPattern(sources[0])
	if err := checkTarget(text, target, sources[0], several); err != nil {
		return nil, err
	}
	var all []Ends
	seen := map[string]bool{}
	for i, source := range sources {
		landed := landing(source, target)
		if seen[landed] && !isPattern(source) {
			return nil, exit.Usagef("two sources have the name %s in DST %s: copy them one by one",
				quote.Text(nameOf(source)), quote.Text(text))
		}
		seen[landed] = true
		e := Ends{Directory: nameOf(source) == ""}
		if s.Sends {
			e.Local, e.Remote = source, s.Remote[0]
			e.Remote.Path = path.Clean("/" + landed)[1:]
		} else {
			e.Local, e.Remote = landed, s.Remote[i]
		}
		all = append(all, e)
	}
	return all, nil
}

// checkTarget refuses sources that a target cannot take. text is the target as the user knows it, of which at is the
// part that decides: that below a share.
func checkTarget(text, at, first string, several bool) error {
	switch inside := landsInside(at); {
	case inside && first == option.Stream:
		return exit.Usagef("SRC - has no name in DST %s: end that with the name of the new file", quote.Text(text))
	case !inside && several:
		return exit.Usagef("DST %s would be the name of each of several sources: end it with / to copy into it",
			quote.Text(text))
	}
	return nil
}

// landing returns the path of the copy of a source.
func landing(source, target string) string {
	if !landsInside(target) {
		return target
	}
	directory, name := withoutSlash(target), nameOf(source)
	switch {
	case name == "":
		return directory
	case directory == "", strings.HasSuffix(directory, "/"):
		return directory + name
	}
	return directory + "/" + name
}

// landsInside reports whether a copy lands in the target, under the name of the source: its spelling says that it is a
// directory. Any other target is the name of the copy itself. A share alone is an empty path.
func landsInside(target string) bool {
	switch lastOf(target) {
	case "", ".", "..":
		return true
	}
	return false
}

// nameOf returns the name of a source in a directory, with or without slashes at its end. It is empty for a source that
// is meant by its content: one that ends with "." or "..", or the root directory.
func nameOf(source string) string {
	name := lastOf(strings.TrimRight(source, "/"))
	if name == "." || name == ".." {
		return ""
	}
	return name
}

func lastOf(at string) string { return at[strings.LastIndexByte(at, '/')+1:] }

// withoutSlash returns a path without slashes and "." at its end. The root directory stays.
func withoutSlash(at string) string {
	for len(at) > 1 && (strings.HasSuffix(at, "/") || strings.HasSuffix(at, "/.")) {
		at = at[:max(1, strings.LastIndexByte(at, '/'))]
	}
	return at
}
