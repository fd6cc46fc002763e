package operations

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// CheckTarget refuses sources that a target cannot take. text is the target as the user knows it; at is the part that
// decides: in a share, the path below it.
func CheckTarget(text, at, first string, several bool) error {
	switch inside := landsInside(at); {
	case inside && first == job.StreamName:
		return exit.Usagef("SRC - has no name in DST %s: end that with the name of the new file", quote.Text(text))
	case !inside && several:
		return exit.Usagef("DST %s would be the name of each of several sources: end it with / to copy into it",
			quote.Text(text))
	}
	return nil
}

// Landing returns the path of the copy of a source.
func Landing(source, target string) string {
	if !landsInside(target) {
		return target
	}
	directory, name := withoutSlash(target), NameOf(source)
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

// NameOf returns the name of a source in a directory, with or without slashes at its end. It is empty for a source that
// is meant by its content: one that ends with "." or "..", or the root directory.
func NameOf(source string) string {
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
