package digest

import (
	"slices"
	"strings"
	"testing"
)

const sha256OfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func mustParse(t *testing.T, text string) Sum {
	t.Helper()
	sum, err := ParseSum(text)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestManifest(t *testing.T) {
	text := "# made by hand\n\n" +
		"crc32c:1f0e22c4  a\n" +
		"xxh3:2D06800538D394C2 *b c\n" +
		sha256OfNothing + "  dir/d\n" +
		sha256OfNothing + " * e\n" +
		`\` + sha256OfNothing + `  f\\\n\r` + "\n" +
		"crc32c:00000000    blanks, and no end"
	want := []Entry{
		{mustParse(t, "crc32c:1f0e22c4"), "a"},
		{mustParse(t, "xxh3:2d06800538d394c2"), "b c"},
		{mustParse(t, "sha256:"+sha256OfNothing), "dir/d"},
		{mustParse(t, "sha256:"+sha256OfNothing), " e"},
		{mustParse(t, "sha256:"+sha256OfNothing), "f\\\n\r"},
		{mustParse(t, "crc32c:00000000"), "  blanks, and no end"},
	}
	if got, err := ParseManifest(text); err != nil || !slices.Equal(got, want) {
		t.Errorf("error %v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestManifestsThatAreNone(t *testing.T) {
	const shape = "not a digest, two spaces and a path"
	cases := []struct{ line, sentence string }{
		{"crc32c:1f0e22c4", shape},
		{"crc32c:1f0e22c4 a", shape},
		{"crc32c:1f0e22c4  ", shape},
		{"crc32c:1f0e22c4\ta", shape},
		{"crc32c:1f0e22c4  a\x00b", shape},
		{"just some words", shape},
		{"just  some words", "a digest without its algorithm; give ALGORITHM:HEX, or the 64 digits of sha256"},
		{"1f0e22c4  a", "a digest without its algorithm; give ALGORITHM:HEX, or the 64 digits of sha256"},
		{strings.Repeat("g", 64) + "  a", "a sha256 digest has 64 hexadecimal digits, and nothing else"},
		{"crc32c:1f0e22  a", "a crc32c digest has 8 hexadecimal digits, not 6"},
		{"none:  a", "none has no digest; give another algorithm"},
		{`\crc32c:1f0e22c4  a\b`, `invalid escape in the path, not one of \\, \n and \r`},
		{`\crc32c:1f0e22c4  a\`, `invalid escape in the path, not one of \\, \n and \r`},
	}
	for _, tc := range cases {
		_, err := ParseManifest("# one\ncrc32c:00000000  fine\n" + tc.line + "\n")
		if want := "line 3: " + tc.sentence; err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", tc.line, err, want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add("crc32c:1f0e22c4  a\n" + sha256OfNothing + " *b\n")
	f.Add(`\` + sha256OfNothing + `  a\\b\n`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ParseManifest(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, entry := range entries {
			again.WriteString(entry.String() + "\n")
		}
		if got, err := ParseManifest(again.String()); err != nil || !slices.Equal(got, entries) {
			t.Errorf("%q was written as %q: error %v", text, again.String(), err)
		}
	})
}
