package tree

import (
	"slices"
	"strings"
)

// WithoutFolded returns the entries of extra, as Extra yields them, that are not entries of the source under another
// name. A file system that folds case, or composes characters, lists Report.txt and finds it as report.txt, too. found
// are the entries of the source that the list of the target does not have, with what the target has at their paths.
// Nothing below a directory that is an entry of the source is returned either.
func WithoutFolded(extra, found []Listed) []Listed {
	if len(found) == 0 {
		return extra
	}
	beside := map[string][]Listed{}
	for _, e := range extra {
		beside[directoryOf(e.Path)] = append(beside[directoryOf(e.Path)], e)
	}
	same := map[string]bool{}
	for _, e := range found {
		for _, name := range namesOf(e, beside[directoryOf(e.Path)]) {
			same[name] = true
		}
	}
	return Without(extra, same)
}

// namesOf returns the paths of the candidates that may be an entry. It is the one of the same file; but each name of a
// file has a number of its own in many file systems in user space. There it is one with the same attributes, and if
// these have just changed any one of the same kind.
func namesOf(e Listed, candidates []Listed) (paths []string) {
	for _, isSame := range []func(Listed) bool{
		func(c Listed) bool { return c.File == e.File },
		func(c Listed) bool { return c.Kind == e.Kind && c.Size == e.Size && c.Modified == e.Modified },
		func(c Listed) bool { return c.Kind == e.Kind },
	} {
		for _, c := range candidates {
			if isSame(c) {
				paths = append(paths, c.Path)
			}
		}
		if len(paths) > 0 {
			break
		}
	}
	return paths
}

// Without returns the entries that are not among these paths, nor below one of them.
func Without(entries []Listed, paths map[string]bool) []Listed {
	return slices.DeleteFunc(entries, func(e Listed) bool { return isAmong(paths, e.Path) })
}

// directoryOf returns the path of the directory that contains an entry, empty for the root.
func directoryOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// isAmong reports whether a path, or a directory above it, is in a set.
func isAmong(set map[string]bool, path string) bool {
	for ; path != ""; path = directoryOf(path) {
		if set[path] {
			return true
		}
	}
	return false
}
