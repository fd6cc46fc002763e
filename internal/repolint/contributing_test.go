package repolint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var namedPath = regexp.MustCompile("`([a-z]+/[a-z0-9_/.-]*[a-z0-9_])/?`")

// TestPathsOfContributingPage looks for the files and folders that CONTRIBUTING.md names.
func TestPathsOfContributingPage(t *testing.T) {
	paths := namedPath.FindAllStringSubmatch(readFile(t, filepath.Join(repositoryRoot, "CONTRIBUTING.md")), -1)
	if len(paths) < 15 {
		t.Errorf("found %d paths only", len(paths))
	}
	for _, match := range paths {
		if strings.HasPrefix(match[1], "bin/") || strings.HasPrefix(match[1], "build/") {
			continue
		}
		if _, err := os.Stat(filepath.Join(repositoryRoot, filepath.FromSlash(match[1]))); err != nil {
			t.Error(err)
		}
	}
}
