package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
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
	p := program.New()
	all := append([]root.Command{p.Copy}, p.Commands...)
	for _, c := range all {
		offered := map[string]string{}
		for _, line := range completions(t, nil, append(strings.Fields(c.Name), "--")...) {
			name, about, _ := strings.Cut(line, "\t")
			offered[name] = about
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		option.Declare(flags, c.Settings)
		flags.VisitAll(func(flag *pflag.Flag) {
			if about, is := offered["--"+flag.Name]; is == flag.Hidden || is && about == "" {
				t.Errorf("dma-copy %s --%s: offered %t, with %q", c.Name, flag.Name, is, about)
			}
		})
	}
}

// The variable is a duration as those of flags, which may have days.
func TestGrace(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": time.Second, "1.5s": 1500 * time.Millisecond, "1d": 24 * time.Hour, "-1s": time.Second,
		"0": time.Second, "soon": time.Second,
	} {
		c := root.Completer{Streams: root.Streams{Env: func(name string) (string, bool) {
			return text, name == "DMA_COPY_COMPLETION_WAIT"
		}}}
		if got := c.Grace(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Nothing is said about settings that are wrong or a daemon that is not there, and what can be offered is.
func TestCompletionIsSilent(t *testing.T) {
	broken := map[string]string{"DMA_COPY_WAIT": "never", "DMA_COPY_CONFIG": "/nonexistent", "DMA_COPY_AUTH": "none"}
	for line, want := range map[string]string{
		"push --digest bl":                  "blake3",
		"push --chunk _":                    "",
		"push --trust-first ucx://x":        "",
		"ls ucx://127.0.0.1:1/":             "",
		"ls ucx://[/":                       "",
		"ls :/":                             "",
		"keys --keys /nonexistent remove _": "",
		"keys --keys /nonexistent trust --overwrite _": "",
		"devices --driver ucx -p _":                    "",
		"serve --driver ucx -p _":                      "",
		"config nothing --":                            "",
		"config show nothing --":                       "",
		"sync a b c":                                   "",
		"completion zsh _":                             "",
		"-- -l W":                                      "WARNING",
		"push --path tls,":                             "",
		"serve --path tls,tcp,am,rma,dma,":             "tls,tcp,am,rma,dma,fast",
		"help pul":                                     "pull",
		"help pull _":                                  "",
		"push --cores 0 --num":                         "",
		"config show push --cores 0 --num":             "",
		"config show copy _":                           "",
		"config -o json show copy --digest bl":         "blake3",
		"config show serve --audit":                    "--audit-log\tAppend a JSON line for each request",
	} {
		if got := strings.Join(completions(t, broken, words(line)...), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
