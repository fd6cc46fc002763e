package contest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

const unknown = "unknown"

// fileSystemOf returns the type of the file system that holds a directory.
func fileSystemOf(directory string) string {
	resolved, err := filepath.EvalSymlinks(directory)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return unknown
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return unknown
	}
	return fileSystemIn(string(mounts), resolved)
}

// mountLine matches the mount point and the type in a line of mountinfo, which are separated by a variable number of
// words.
var mountLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\S+ \S+ \S+ \S+ (\S+) .*? - (\S+) `)
})

// fileSystemIn finds the innermost mount point above the directory. Of two mounts on one point the later one counts.
func fileSystemIn(mounts, directory string) string {
	nearest, kind := "", unknown
	for line := range strings.Lines(mounts) {
		match := mountLine().FindStringSubmatch(line)
		if match == nil {
			continue
		}
		point := match[1]
		inside := directory == point || strings.HasPrefix(directory, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= len(nearest) {
			nearest, kind = point, match[2]
		}
	}
	return kind
}
