package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/fleet"
	"github.com/dma-copy/dma-copy/internal/share"
)

var (
	// shellCommand is a command of a script, and argvCommand one of a playbook, as a list.
	shellCommand = regexp.MustCompile(`\bdma-copy ((?:push|keys|serve) [^|&)>\n]+)`)
	argvCommand  = regexp.MustCompile(`argv: \[(?:runuser[^\]]*, )?dma-copy, ([^\]]+)\]`)

	// containerArgs are those of the daemon in the manifest, one on each line.
	containerArgs = regexp.MustCompile(`command: \[dma-copy, (serve)\]\n +args:\n((?: +- --.+\n)+)`)
	templateValue = regexp.MustCompile(`"?\{\{ [^}]+ \}\}"?`)
)

// TestCommandsOfFleetExamplesAreAccepted parses the commands in examples/fleet as the program does, without running
// them.
func TestCommandsOfFleetExamplesAreAccepted(t *testing.T) {
	var found [][]string
	root := filepath.Join("..", "..", "examples", "fleet")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) != ".md" {
			found = append(found, commandsOf(templateValue.ReplaceAllString(readFile(t, path), "VALUE"))...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 12 {
		t.Errorf("found %d commands only: %q", len(found), found)
	}
	for _, words := range found {
		if err := parseOnly(words); err != nil {
			t.Errorf("dma-copy %s: %v", words, err)
		}
	}
}

// commandsOf returns the commands of dma-copy in a script, a playbook or a manifest.
func commandsOf(text string) (found [][]string) {
	for _, match := range shellCommand.FindAllStringSubmatch(text, -1) {
		found = append(found, wordsOf(typedWord.FindAllString(match[1], -1)))
	}
	for _, match := range argvCommand.FindAllStringSubmatch(text, -1) {
		found = append(found, wordsOf(strings.Split(match[1], ", ")))
	}
	for _, match := range containerArgs.FindAllStringSubmatch(text, -1) {
		args := strings.Fields(strings.ReplaceAll(match[2], "- --", "--"))
		found = append(found, append([]string{match[1]}, args...))
	}
	return found
}

func wordsOf(quoted []string) []string {
	words := make([]string, len(quoted))
	for i, word := range quoted {
		words[i] = strings.Trim(word, `'"`)
	}
	return words
}

// TestParametersOfFleetExample renders the parameter file of the playbook with the values of its defaults, and parses
// it.
func TestParametersOfFleetExample(t *testing.T) {
	role := filepath.Join("..", "..", "examples", "fleet", "ansible", "roles", "dma_copy")
	text := readFile(t, role, "templates", "serve.json.j2")
	defaults := readFile(t, role, "defaults", "main.yml")
	for _, match := range regexp.MustCompile(`(?m)^(dma_copy_\w+): (\S+)$`).FindAllStringSubmatch(defaults, -1) {
		text = strings.ReplaceAll(text, "{{ "+match[1]+" }}", match[2])
	}
	file := filepath.Join(t.TempDir(), "serve.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := parseOnly([]string{"serve", "--json", file}); err != nil || strings.Contains(text, "{{") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// TestListOfFleetExample reads the list of peers.
func TestListOfFleetExample(t *testing.T) {
	list, err := os.Open(filepath.Join("..", "..", "examples", "fleet", "peers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close() // only read
	targets, err := fleet.ParseTargets(list, &share.Remote{Share: "images"})
	if err != nil || len(targets) != 4 {
		t.Errorf("%d targets, %v", len(targets), err)
	}
}
