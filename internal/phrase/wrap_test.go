package phrase

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	long := strings.Repeat("a", 30)
	for text, want := range map[string][]string{
		"":                              {""},
		"one two":                       {"one two"},
		"one two three":                 {"one two", "three"},
		"one two " + long + " three":    {"one two", long, "three"},
		long:                            {long},
		"with  blanks  between   words": {"with", "blanks", "between", "words"},
	} {
		if got := Wrap(text, 8); !slices.Equal(got, want) {
			t.Errorf("%q is wrapped to %q, want %q", text, got, want)
		}
	}
}
