package quote

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	cases := []struct{ text, text80, bare string }{
		{"", `""`, ""},
		{"image.bin", `"image.bin"`, "image.bin"},
		{`a "b" \c`, `"a \"b\" \\c"`, `a "b" \c`},
		{"a\n\x1b[2J\u202e", `"a\n\x1b[2J\u202e"`, `a\n\x1b[2J\u202e`},
		{"\xe9\xff", `"\xe9\xff"`, `\xe9\xff`},
		{"\ufffd", `"` + "\ufffd" + `"`, "\ufffd"},
		{"größe", `"größe"`, "größe"},
		{strings.Repeat("x", 80), `"` + strings.Repeat("x", 80) + `"`, strings.Repeat("x", 80)},
		{"/begin/" + strings.Repeat("x", 900<<10) + "/end",
			`"/begin/` + strings.Repeat("x", 32) + "..." + strings.Repeat("x", 34) + `/end"`,
			"/begin/" + strings.Repeat("x", 32) + "..." + strings.Repeat("x", 34) + "/end"},
		{strings.Repeat("\x00", 21), `"` + strings.Repeat(`\x00`, 9) + "..." + strings.Repeat(`\x00`, 9) + `"`,
			strings.Repeat(`\x00`, 9) + "..." + strings.Repeat(`\x00`, 9)},
	}
	for _, tc := range cases {
		if got := Text(tc.text); got != tc.text80 {
			t.Errorf("quoted %s, want %s", got, tc.text80)
		}
		if got := Bare(tc.text); got != tc.bare {
			t.Errorf("bare %s, want %s", got, tc.bare)
		}
	}
}

// The bytes of any name can be restored from its path in a message, which is one line.
func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"a b/größe": "a b/größe", "a\nb\xff": `a\nb\xff`, `a\nb`: `a\\nb`, `"`: `"`, "\ufffd": "\ufffd",
		strings.Repeat("x", 200): strings.Repeat("x", 200),
	} {
		if got := Path(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		path := Path(name)
		restored, err := strconv.Unquote(`"` + strings.ReplaceAll(path, `"`, `\"`) + `"`)
		if err != nil || restored != name || Printable(path) != path {
			t.Errorf("%q: %s, restored %q, error %v", name, path, restored, err)
		}
	})
}

// Whatever the text is, the result is short and printable, and a short text can be read back.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
		text := rapid.OneOf(rapid.String(), bytes).Draw(t, "text")
		quoted := Text(text)
		for _, shown := range []string{strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`), Bare(text)} {
			if n := utf8.RuneCountInString(shown); n > Longest {
				t.Errorf("%d characters: %s", n, shown)
			}
			for _, r := range shown {
				if !strconv.IsPrint(r) {
					t.Errorf("%q has %q", shown, r)
				}
			}
		}
		if back, err := strconv.Unquote(quoted); len(strconv.Quote(text)) <= Longest && (err != nil || back != text) {
			t.Errorf("%s reads as %q: %v", quoted, back, err)
		}
	})
}
