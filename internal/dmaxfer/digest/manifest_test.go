package digest

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const sha256OfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// parseManifest returns all entries.
func parseManifest(text string) ([]Entry, error) {
	manifest := ReadManifest(strings.NewReader(text))
	var entries []Entry
	for {
		entry, err := manifest.Next()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
}

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
	if got, err := parseManifest(text); err != nil || !slices.Equal(got, want) {
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
		{"crc32c:1f0e22c4  " + strings.Repeat("a", maxLine), "longer than 65536 bytes"},
	}
	for _, tc := range cases {
		_, err := parseManifest("# one\ncrc32c:00000000  fine\n" + tc.line + "\n")
		if want := "line 3: " + tc.sentence; err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", tc.line, err, want)
		}
	}
}

// An error of the reader is no end of the manifest.
func TestManifestThatCannotBeRead(t *testing.T) {
	broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("crc32c:00000000  fine\n")))
	if _, err := ReadManifest(broken).Next(); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add("crc32c:1f0e22c4  a\n" + sha256OfNothing + " *b\n")
	f.Add(`\` + sha256OfNothing + `  a\\b\n`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseManifest(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, entry := range entries {
			again.WriteString(entry.String() + "\n")
		}
		if got, err := parseManifest(again.String()); err != nil || !slices.Equal(got, entries) {
			t.Errorf("%q was written as %q: error %v", text, again.String(), err)
		}
	})
}
