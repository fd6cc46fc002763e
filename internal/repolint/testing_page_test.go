package repolint

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)(?:/\\w+)?`")
	namedScript  = regexp.MustCompile("`([a-z]+(?:_[a-z*]+)*)`")
)

// TestTestingPageNamesExistingTests keeps docs/TESTING.md from naming tests and scripts that do not exist.
func TestTestingPageNamesExistingTests(t *testing.T) {
	page := readFile(t, filepath.Join(repositoryRoot, "docs", "TESTING.md"))
	declared := declaredTests(t)
	for _, match := range namedTest.FindAllStringSubmatch(page, -1) {
		if !declared[match[1]] {
			t.Errorf("there is no test %s", match[1])
		}
	}
	scripts := scriptsNamedIn(page)
	if len(scripts) == 0 {
		t.Error("no script is named")
	}
	for _, name := range scripts {
		if !scriptExists(t, name) {
			t.Errorf("there is no script %s", name)
		}
	}
}

// declaredTests returns the names of all test and fuzz functions of the module.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	for _, file := range moduleFiles(t) {
		if !file.test {
			continue
		}
		content := readFile(t, filepath.Join(repositoryRoot, file.path))
		for _, match := range testFunction.FindAllStringSubmatch(content, -1) {
			declared[match[1]] = true
		}
	}
	return declared
}

// scriptsNamedIn returns the words in the tables of promises that are spelled as scripts are.
func scriptsNamedIn(page string) []string {
	_, promises, _ := strings.Cut(page, "## Promises and the tests that hold them")
	var names []string
	for _, match := range namedScript.FindAllStringSubmatch(promises, -1) {
		if match[1] != "clean" && match[1] != "doca_dma_copy" { // a command of scripts, and a program
			names = append(names, match[1])
		}
	}
	return names
}

// scriptExists looks for a script, or for any if the name has a *, in the program's folder and those in it.
func scriptExists(t *testing.T, name string) bool {
	t.Helper()
	for _, folder := range []string{".", "*"} {
		pattern := filepath.Join(repositoryRoot, programPackage, folder, "testdata", "script", name+".txtar")
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return true
		}
	}
	return false
}
