package share_test

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/share"
)

func TestPatterns(t *testing.T) {
	entries := strings.Fields("a.jpg b.jpg c.png .hidden.jpg d/ d/e.jpg d/f/ d/f/g.jpg .h/ .h/i.jpg [x] a*b")
	for pattern, want := range map[string]string{
		"*.jpg":       "a.jpg b.jpg",
		"*":           "a.jpg b.jpg c.png d/ [x] a*b",
		"*/":          "d/",
		".*":          ".hidden.jpg .h/",
		"?.jpg":       "a.jpg b.jpg",
		"[a-b].*":     "a.jpg b.jpg",
		"[!a].jpg":    "b.jpg",
		"*/*.jpg":     "d/e.jpg",
		"**/*.jpg":    "a.jpg b.jpg d/e.jpg d/f/g.jpg",
		"**":          "a.jpg b.jpg c.png d/ d/e.jpg d/f/ d/f/g.jpg [x] a*b",
		".h/**":       ".h/i.jpg",
		".*/*":        ".h/i.jpg",
		`\[*`:         "[x]",
		`a\**`:        "a*b",
		"d/*":         "d/e.jpg d/f/",
		"d/**/*.jpg":  "d/e.jpg d/f/g.jpg",
		"d/f/../*":    "",
		"nothing*":    "",
		`\.hidden.*`:  ".hidden.jpg",
		"d/./e.jp[g]": "",
	} {
		p, err := share.ParsePattern(pattern)
		if err != nil || !p.Several() || !share.IsPattern(pattern) {
			t.Errorf("%s: %+v, %v", pattern, p, err)
			continue
		}
		var got []string
		for _, entry := range entries {
			path, isDirectory := strings.CutSuffix(entry, "/")
			below, inside := path, true
			if p.Base != "" {
				below, inside = strings.CutPrefix(path, p.Base+"/")
			}
			deep := strings.Contains(below, "/")
			if inside && (p.Recursive || !deep) && p.Matches(below, isDirectory) {
				got = append(got, entry)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", pattern, text, want)
		}
	}
	for path, want := range map[string]string{`a\*b/c\\d/`: `a*b/c\d`, "a/b": "a/b", "": "", `x\`: `x\`} {
		if p, err := share.ParsePattern(path); err != nil || p.Several() || p.Base != want || share.IsPattern(path) {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
	}
	for _, malformed := range []string{"[a", "a*/[", `*\`} {
		if p, err := share.ParsePattern(malformed); err == nil {
			t.Errorf("%s: %+v", malformed, p)
		}
	}
}
