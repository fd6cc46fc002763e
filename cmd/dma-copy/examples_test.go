package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copy"
	"github.com/dma-copy/dma-copy/internal/cli/program"
)

var (
	promptOfExample = regexp.MustCompile(`^(?:[a-z]*)\$ +`)
	wordOfExample   = regexp.MustCompile(`'[^']*'|[^\s']+`)
	callInExample   = regexp.MustCompile(`(?:^|\| |\()dma-copy ?([^|)>]*)`)
)

// Each example of the help is a command line that the program accepts, and each command has one of itself.
func TestExamplesAreAccepted(t *testing.T) {
	checkExamples(t, "", copy.CopyExamples)
	p := program.New()
	for _, c := range p.Commands {
		checkExamples(t, c.Name, c.Examples)
		for line := range strings.Lines(c.Examples) {
			if len(strings.TrimSuffix(line, "\n"))+len("  ") > 80 {
				t.Errorf("%s: longer than %d columns: %s", c.Name, 80, line)
			}
		}
	}
}

// checkExamples parses all calls of the program in the examples.
func checkExamples(t *testing.T, command, examples string) {
	t.Helper()
	own := 0
	for line := range strings.Lines(examples) {
		prompt := promptOfExample.FindString(line)
		calls := callInExample.FindAllStringSubmatch(strings.TrimSpace(line[len(prompt):]), -1)
		if prompt == "" || len(calls) == 0 {
			t.Errorf("%s: no prompt and command: %s", command, line)
		}
		for _, call := range calls {
			args := wordOfExample.FindAllString(call[1], -1)
			for i := range args {
				args[i] = strings.Trim(args[i], "'")
			}
			if err := parseOnly(args); err != nil {
				t.Errorf("dma-copy %s: %v", call[1], err)
			}
			if command == "" || args[0] == command {
				own++
			}
		}
	}
	if own == 0 {
		t.Errorf("no example of %q", command)
	}
}
