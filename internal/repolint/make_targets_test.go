package repolint

import (
	"regexp"
	"strings"
	"testing"
)

var namedTargets = regexp.MustCompile("`(?:sudo )?make((?: [a-z][a-z0-9-]*)+)(?: [A-Z]+=[^`]*)?`")

// TestMakeTargetsOfPages looks for the targets that the pages name in the Makefile.
func TestMakeTargetsOfPages(t *testing.T) {
	found := 0
	for _, page := range allPages(t) {
		for _, match := range namedTargets.FindAllStringSubmatch(readFile(t, page), -1) {
			found++
			if problem := unknownTarget(t, strings.Fields(match[1])); problem != "" {
				t.Errorf("%s: %s", page, problem)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d targets only", found)
	}
}
