package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

var (
	guideCommand = regexp.MustCompile("`(?:[A-Z_]+=[^ `]+ )*dma-copy ([^`]+)`")
	guideFlag    = regexp.MustCompile("`--([a-z-]+)`")
)

// TestGuidesPageCommandsAreAccepted parses each command of docs/SEEDS.md as the program does, without running it.
func TestGuidesPageCommandsAreAccepted(t *testing.T) {
	t.Chdir("../..") // the commands name files of the repository
	page := readFile(t, "docs", "SEEDS.md")
	commands := guideCommand.FindAllStringSubmatch(page, -1)
	if len(commands) < 10 {
		t.Fatalf("found the commands %q only", commands)
	}
	for _, match := range commands {
		if err := parseOnly(strings.Fields(match[1])); err != nil {
			t.Errorf("dma-copy %s: %v", match[1], err)
		}
	}
	flags := flagsOfACopy()
	for _, match := range guideFlag.FindAllStringSubmatch(page, -1) {
		if flags.Lookup(match[1]) == nil {
			t.Errorf("a copy has no flag --%s", match[1])
		}
	}
}

func TestParseOnlyRefuses(t *testing.T) {
	for _, line := range []string{
		"-p b1:00.1", "-f x --no-such-flag", "-f x --path slow", "-f x extra", "no-such-command",
		"devices --no-such-flag", "doctor --peer=perhaps", "devices extra",
	} {
		if parseOnly(strings.Fields(line)) == nil {
			t.Errorf("dma-copy %s was accepted", line)
		}
	}
}

// parseOnly returns the error of a command line that the program refuses before it does anything.
func parseOnly(args []string) error {
	var out bytes.Buffer
	stdio := root.Streams{Stdout: &out, Stderr: &out, Env: func(string) (string, bool) { return "", false }}
	var ran bool
	p := withCopy(func(copying.Settings) error {
		ran = true
		return nil
	})
	list := p.Commands
	for i := range list {
		list[i].Run = func(context.Context, root.Streams, []string, zerolog.Logger) error {
			ran = true
			return nil
		}
	}
	err := p.NewRootCommand(stdio, args, list).Execute()
	if err == nil && !ran && out.Len() == 0 {
		return errors.New("nothing was done")
	}
	return err
}
