package option

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A command line is split like the flag parser does it, also behind its errors.
func TestSplitWords(t *testing.T) {
	flags := pflag.NewFlagSet("dma-copy", pflag.ContinueOnError)
	flags.BoolP("version", "v", false, "")
	flags.StringP("file", "f", "", "")
	flags.StringP("output", "o", "", "")
	flags.BoolP("quiet", "q", false, "")
	cases := []struct{ line, name, value string }{
		{"--output json", "output", "json"}, {"--output=json", "output", "json"}, {"-o json", "output", "json"},
		{"-ojson", "output", "json"}, {"-o=json", "output", "json"},
		{"-vojson", "output", "json"}, {"-vo json", "output", "json"},
		{"-o=", "output", "="}, {"--output=", "output", ""},
		{"--quiet", "quiet", "true"}, {"--quiet=false", "quiet", "false"},
		{"-f --", "file", "--"}, {"-f -", "file", "-"},
		{"--bad -o json", "output", "json"}, {"---x -o json", "output", "json"},
		{"-Zo -o json", "output", "json"}, {"x -- -o json", "output", "json"},
		{"-f", "", ""}, {"--", "", ""}, {"-o", "", ""},
	}
	for _, tc := range cases {
		t.Run(tc.line, func(t *testing.T) {
			var last word
			for args := strings.Fields(strings.ReplaceAll(tc.line, "_",
				"")); len(args) > 0; args = args[len(last.typed):] {
				last = firstWord(flags, args)
			}
			var name string
			if last.flag != nil {
				name = last.flag.Name
			}
			if name != tc.name || last.value != tc.value {
				t.Errorf("the last word is --%s %q, want --%s %q", name, last.value, tc.name, tc.value)
			}
		})
	}
}
