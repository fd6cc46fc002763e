package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageCommand   = regexp.MustCompile(`(?m)^(host|dpu)\$ +(.+)$`)
	scriptCommand = regexp.MustCompile(`(?m)^(host|dpu) +(.+)$`)
	comment       = regexp.MustCompile(` +#.*$`)
)

// sideCommand is a command as it is typed on one of the two sides.
type sideCommand struct{ side, line string }

func sideCommands(pattern *regexp.Regexp, text string) (found []sideCommand) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, sideCommand{match[1], comment.ReplaceAllString(match[2], "")})
	}
	return found
}

// section returns what a page has between a heading and the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// TestDemoServiceRunsTheTenCommands compares the first commands of guide/service.md with those of make demo-service.
func TestDemoServiceRunsTheTenCommands(t *testing.T) {
	page := readFile(t, "..", "..", "docs", "guide", "service.md")
	shown := sideCommands(pageCommand, section(t, page, "## From nothing to a working pair"))
	run := sideCommands(scriptCommand, readFile(t, "..", "..", "scripts", "demo-service.sh"))
	if !slices.Equal(shown, run) || len(shown) != 10 {
		t.Errorf("the page has the commands\n%q\nand the script\n%q", shown, run)
	}
}

var (
	// typedCommand is a line of a page that runs dma-copy, perhaps in a pipe.
	typedCommand = regexp.MustCompile(`(?m)^(?:[a-z0-9]*\$ +|runuser -u dma-copy -- )(?:.+ \| )?dma-copy (.+)$`)
	typedWord    = regexp.MustCompile(`'[^']*'|[^\s']+`)
)

// TestCommandsOfPagesAreAccepted parses the commands of pages as the program does, also those that no test can run.
func TestCommandsOfPagesAreAccepted(t *testing.T) {
	t.Chdir("../..") // the commands name files of the repository
	for page, least := range map[string]int{
		"docs/guide/fleet.md": 5, "docs/guide/machines.md": 7, "docs/guide/service.md": 15,
		"docs/guide/troubleshooting.md": 1,
	} {
		commands := typedCommand.FindAllStringSubmatch(readFile(t, page), -1)
		if len(commands) < least {
			t.Errorf("%s: found the commands %q only", page, commands)
		}
		for _, match := range commands {
			line, _, _ := strings.Cut(comment.ReplaceAllString(match[1], ""), " > ")
			words := typedWord.FindAllString(line, -1)
			for i := range words {
				words[i] = strings.Trim(words[i], "'")
			}
			if err := parseOnly(words); err != nil {
				t.Errorf("%s: dma-copy %s: %v", page, line, err)
			}
		}
	}
}

// sourceCode returns the program's Go files without tests and its C files, joined at the ends of strings that continue
// on a next line.
func sourceCode(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	for _, top := range []string{"cmd", "internal", "softdoca"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry os.DirEntry, err error) error {
			if err == nil && isSource(path) {
				all.WriteString(readFile(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(all.String(), "")
}

func isSource(path string) bool {
	return strings.HasSuffix(path, ".c") || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}
