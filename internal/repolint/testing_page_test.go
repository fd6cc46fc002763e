package repolint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTestingPageNamesWhatThereIs keeps docs/TESTING.md from promising tests that nobody has any more.
func TestTestingPageNamesWhatThereIs(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "TESTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, file := range moduleFiles(t) {
		if !file.test {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, file.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range function.FindAllSubmatch(source, -1) {
			declared[string(match[1])] = true
		}
	}
	for _, match := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)(?:/\\w+)?`").FindAllStringSubmatch(string(page), -1) {
		if !declared[match[1]] {
			t.Errorf("there is no %s", match[1])
		}
	}
	for _, name := range scriptsNamedIn(string(page)) {
		if found, err := filepath.Glob(filepath.Join(root, "cmd", "dma-copy", "e2e", "testdata", "script", name+".txtar")); err != nil || len(found) == 0 {
			t.Errorf("there is no script %s (%v)", name, err)
		}
	}
}

// scriptsNamedIn are the words that are spelled as scripts are, in the tables of promises.
func scriptsNamedIn(page string) []string {
	_, promises, _ := strings.Cut(page, "## Promises and where they are held")
	var names []string
	for _, match := range regexp.MustCompile("`([a-z]+(?:_[a-z*]+)*)`").FindAllStringSubmatch(promises, -1) {
		if match[1] != "clean" && match[1] != "doca_dma_copy" { // a command of scripts, and a program
			names = append(names, match[1])
		}
	}
	return names
}
