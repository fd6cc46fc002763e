package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/devices"
	"github.com/dma-copy/dma-copy/internal/cli/doctor"
	"github.com/dma-copy/dma-copy/internal/cli/local"
	"github.com/dma-copy/dma-copy/internal/cli/ls"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/cli/verify"
	"github.com/dma-copy/dma-copy/internal/cli/version"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Every option refuses a long value of a flag, a variable or a parameter file with one short line. Options that take
// any path do not check it.
func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("Z", 900<<10)
	tested := map[string]bool{}
	for command, s := range everySettings() {
		for _, opt := range s.Table() {
			if tested[opt.Name+opt.Value] { // by another command
				continue
			}
			tested[opt.Name+opt.Value] = true
			if slices.Contains([]string{"FILE", "DIR", "MANIFEST", "NAME", "PATH"}, opt.Value) {
				continue
			}
			t.Run(command+" "+opt.Name, func(t *testing.T) {
				inNewDir(t, "long.json", fmt.Sprintf(`{%q: {%q: %q}}`, opt.FileGroup(), opt.Name, long))
				all := []error{load(s, nil, "--"+opt.Name+"="+long)}
				if !opt.FlagOnly { // which has no variable
					all = append(all, load(s, map[string]string{option.VariableName(opt.Name): long}))
				}
				for _, err := range all {
					if err == nil {
						t.Fatal("accepted")
					}
					if n := utf8.RuneCountInString(err.Error()); n > 500 ||
						strings.Count(err.Error(), "Z") > 2*quote.Longest {
						t.Errorf("%d characters: %.300s", n, err)
					}
				}
				err := load(s, nil, "-j", "long.json")
				if err == nil {
					t.Fatal("accepted in a parameter file")
				}
				if n := utf8.RuneCountInString(err.Error()); n > 500 {
					t.Errorf("%d characters: %.300s", n, err)
				}
			})
		}
	}
}

// everySettings returns the settings of all commands by the command's name.
func everySettings() map[string]option.Settings {
	return map[string]option.Settings{
		"": &copying.Settings{}, "devices": &devices.Settings{}, "doctor": &doctor.Settings{},
		"local": &local.Settings{}, "ping": &ping.Settings{}, "verify": &verify.Settings{},
		"version": &version.Settings{},
		"config":  &config.Settings{}, "ls": &ls.Settings{}, "serve": &serve.Settings{},
		"push": &transfer.Settings{Kind: transfer.Push}, "pull": &transfer.Settings{Kind: transfer.Pull},
		"sync": &transfer.Settings{Kind: transfer.Sync},
	}
}

func TestCommonOptions(t *testing.T) {
	for command, s := range everySettings() {
		want := []string{"log-level", "log-format", "sdk-log-level", "json", "driver", "require-hw", "doca-libdir"}
		switch command {
		case "config", "verify":
			want = []string{"log-level", "log-format", "json"}
		case "", "local", "serve", "push", "pull", "sync":
			want = want[:4] // those of DOCA's own program come next
		}
		var names []string
		for _, opt := range s.Table() {
			names = append(names, opt.Name)
		}
		if !slices.Equal(names[:min(len(want), len(names))], want) {
			t.Errorf("%s has %q", command, names)
		}
	}
}
