package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
)

// completions returns what a shell is offered for a command line, a line each with a tab in front of the description.
func completions(t *testing.T, variables map[string]string, args ...string) []string {
	t.Helper()
	got := invoke(variables, append([]string{"__complete"}, args...)...)
	if got.err != nil || got.ran {
		t.Fatalf("%q: error %v, ran %t", args, got.err, got.ran)
	}
	if !strings.HasPrefix(got.stderr, "Completion ended with directive: ") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%q: stderr %q", args, got.stderr)
	}
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	return lines[:len(lines)-1] // the last one is for the shell's script
}

// Every flag that the help names is offered, with a description on one line.
func TestEveryFlagIsOffered(t *testing.T) {
	all := append([]command{{settings: &config.Copy{}}}, commands()...)
	for _, c := range all {
		offered := map[string]string{}
		for _, line := range completions(t, nil, append(strings.Fields(c.name), "--")...) {
			name, about, _ := strings.Cut(line, "\t")
			offered[name] = about
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		config.Declare(flags, c.settings)
		flags.VisitAll(func(flag *pflag.Flag) {
			if about, is := offered["--"+flag.Name]; is == flag.Hidden || is && about == "" {
				t.Errorf("dma-copy %s --%s: offered %t, with %q", c.name, flag.Name, is, about)
			}
		})
	}
}

// Nothing is said about settings that are wrong, and what can be offered is.
func TestCompletionIsSilent(t *testing.T) {
	broken := map[string]string{"DMA_COPY_WAIT": "never", "DMA_COPY_CONFIG": "/nonexistent", "DMA_COPY_AUTH": "none"}
	for line, want := range map[string]string{
		"push --digest bl":                  "blake3",
		"push --chunk _":                    "",
		"ls :/":                             "",
		"keys --keys /nonexistent remove _": "",
		"keys --keys /nonexistent trust --overwrite _": "",
		"devices --driver ucx -p _":                    "",
		"serve --driver ucx -p _":                      "",
		"config nothing --":                            "",
		"sync a b c":                                   "",
		"completion zsh _":                             "",
		"-- -l W":                                      "WARNING",
		"push --path tls,":                             "",
		"serve --path tls,tcp,am,rma,dma,":             "tls,tcp,am,rma,dma,fast",
	} {
		if got := strings.Join(completions(t, broken, words(line)...), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
