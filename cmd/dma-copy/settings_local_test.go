package main

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/local"
)

// The options of a local copy are those of a copy, without any about the other side.
func TestLocalOptions(t *testing.T) {
	for _, opt := range new(local.Settings).Table() {
		for _, word := range []string{"other side", "Sender", "Receiver", "-f -", "peer"} {
			if strings.Contains(opt.Help, word) {
				t.Errorf("the help of --%s says %q", opt.Name, word)
			}
		}
	}
}

func TestLocalArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		line string
		want string // the error
	}{
		"files":              {args: []string{"a", "b"}},
		"from stdin":         {args: []string{"-", "b"}},
		"to stdout":          {args: []string{"a", "-"}},
		"nothing":            {want: "SRC is missing: "},
		"one":                {args: []string{"a"}, want: "DST is missing: "},
		"three":              {args: []string{"a", "b", "c"}, want: `unexpected argument "c": `},
		"an empty name":      {args: []string{"", "b"}, want: `SRC "": an empty name`},
		"from a machine":     {args: []string{"ucx://lab/f", "b"}, want: `SRC "ucx://lab/f": a file on another `},
		"to a machine":       {args: []string{"a", "ucx://lab/in/f"}, want: `DST "ucx://lab/in/f": a file on another `},
		"not to a machine":   {args: []string{"a", "./ucx://lab/in/f"}},
		"streams":            {args: []string{"-", "-"}, want: "SRC and DST are both -: "},
		"a plan of stdin":    {args: []string{"-", "b"}, line: "--dry-run", want: "SRC - conflicts with --dry-run: "},
		"a list for stdout":  {args: []string{"a", "-"}, line: "--files-from x", want: "DST - conflicts with "},
		"a null for nothing": {args: []string{"a", "b"}, line: "-0", want: "--null is for the list of --files-from: "},
		"weak digest": {args: []string{"a", "b"}, line: "--expect crc32c:00000000 --digest sha256",
			want: "--expect crc32c:00000000 conflicts with --digest sha256: "},
		"CPUs twice": {args: []string{"a", "b"}, line: "--cores 0 --numa 0", want: "--cores 0 conflicts "},
	} {
		var s local.Settings
		err := load(&s, nil, strings.Fields(tc.line)...)
		if err == nil {
			err = s.SetPaths(tc.args)
		}
		if err == nil {
			err = s.Validate()
		}
		switch {
		case tc.want == "" && (err != nil || s.File != tc.args[0] || s.Target != tc.args[1]):
			t.Errorf("%s: %v, and copies %q to %q", name, err, s.File, s.Target)
		case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
