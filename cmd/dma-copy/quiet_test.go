package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// With --quiet a command that succeeds prints nothing, and one that fails its error.
func TestQuietCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "a", "content")
	writeFile(t, "b", "content")
	writeFile(t, "c", "another")
	writeFile(t, "line", strings.TrimSpace(publicLine(t)))
	cases := []struct {
		line   string
		code   int
		output string // how it starts; empty: none
	}{
		{"verify -q a b", 0, ""},
		{"verify -q a c", 9, "FAIL  a and c differ"},
		{"verify -q --write sums a b", 0, ""},
		{"verify -q sums", 0, ""},
		{"keys new -q --keys k", 0, ""},
		{"keys trust -q --keys k other line", 0, ""},
		{"keys remove -q --keys k other", 0, ""},
		{"keys show -q --keys k", 0, "dma-copy-v1:"},
	}
	for _, tc := range cases {
		var stdout, stderr bytes.Buffer
		stdio := root.Streams{Stdout: &stdout, Stderr: &stderr, Env: func(string) (string, bool) { return "", false }}
		err := program.New().Execute(t.Context(), stdio, words(tc.line))
		if got := exit.Code(err); got != tc.code {
			t.Errorf("%s: exit code %d (%v), want %d", tc.line, got, err, tc.code)
		}
		printed := stdout.String() + stderr.String()
		if !strings.HasPrefix(printed, tc.output) || (tc.output == "") != (printed == "") {
			t.Errorf("%s: printed %q, want %q", tc.line, printed, tc.output)
		}
	}
}

// publicLine returns the line of a new key.
func publicLine(t *testing.T) string {
	t.Helper()
	var stdout bytes.Buffer
	stdio := root.Streams{Stdout: &stdout, Stderr: &stdout, Env: func(string) (string, bool) { return "", false }}
	must(t, program.New().Execute(t.Context(), stdio, words("keys new --keys another")))
	return strings.SplitN(stdout.String(), "\n", 2)[0]
}
