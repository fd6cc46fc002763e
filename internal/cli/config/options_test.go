package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Every option refuses a long value of a flag, a variable or a parameter file with one short line. Options that take
// any path do not check it.
func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("Z", 900<<10)
	tested := map[string]bool{}
	for command, s := range everySettings() {
		for _, opt := range s.options() {
			if tested[opt.name+opt.value] { // by another command
				continue
			}
			tested[opt.name+opt.value] = true
			if slices.Contains([]string{"FILE", "DIR", "MANIFEST", "NAME", "PATH"}, opt.value) {
				continue
			}
			t.Run(command+" "+opt.name, func(t *testing.T) {
				inNewDir(t, "long.json", fmt.Sprintf(`{%q: {%q: %q}}`, paramsGroup(opt), opt.name, long))
				for _, err := range []error{
					load(s, nil, "--"+opt.name+"="+long),
					load(s, map[string]string{variableName(opt.name): long}),
				} {
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
func everySettings() map[string]Settings {
	return map[string]Settings{
		"": &Copy{}, "devices": &Devices{}, "doctor": &Doctor{},
		"local": &Local{}, "ping": &Ping{}, "verify": &Verify{}, "version": &Version{},
		"config": &Config{}, "ls": &List{}, "serve": &Serve{},
		"push": &Transfer{Kind: Push}, "pull": &Transfer{Kind: Pull}, "sync": &Transfer{Kind: Sync},
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
		for _, opt := range s.options() {
			names = append(names, opt.name)
		}
		if !slices.Equal(names[:min(len(want), len(names))], want) {
			t.Errorf("%s has %q", command, names)
		}
	}
}
