package repolint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchor     = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	markdownHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fencedBlock     = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinksOfThePages checks that the files and headings that the Markdown pages link to exist. Other sites are not
// looked up.
func TestLinksOfThePages(t *testing.T) {
	pages := allPages(t)
	if len(pages) < 2 {
		t.Fatalf("found the pages %q only", pages)
	}
	for _, page := range pages {
		for _, match := range markdownLink.FindAllStringSubmatch(withoutCode(readFile(t, page)), -1) {
			if problem := brokenLink(t, page, match[1]); problem != "" {
				t.Errorf("%s: %s: %s", page, match[1], problem)
			}
		}
	}
}

// TestFilesOfTheSeedsPage checks that the files exist that docs/SEEDS.md names.
func TestFilesOfTheSeedsPage(t *testing.T) {
	file := regexp.MustCompile("`([A-Za-z]+(?:/[A-Za-z0-9_.-]+)+)`")
	named := file.FindAllStringSubmatch(readFile(t, filepath.Join(repositoryRoot, "docs", "SEEDS.md")), -1)
	if len(named) < 50 {
		t.Fatalf("found the files %q only", named)
	}
	for _, match := range named {
		if _, err := os.Stat(filepath.Join(repositoryRoot, match[1])); err != nil {
			t.Error(err)
		}
	}
}

// allPages returns the Markdown pages about the program, the software device and the lab.
func allPages(t *testing.T) []string {
	t.Helper()
	pages := slices.Concat(glob(t, "*.md"), glob(t, "internal/*/*.md"), glob(t, "lab/*.md"), glob(t, "softdoca/*.md"),
		glob(t, "softdoca/docs/*.md"), glob(t, "softdoca/docs/reference/*.md"))
	err := filepath.WalkDir(filepath.Join(repositoryRoot, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(repositoryRoot, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// brokenLink returns what is wrong with a link, or "".
func brokenLink(t *testing.T, page, link string) string {
	t.Helper()
	if strings.Contains(link, "://") {
		return ""
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(target); err != nil {
		return "no such file"
	}
	if hasAnchor && !slices.Contains(anchors(readFile(t, target)), anchor) {
		return "no such heading"
	}
	return ""
}

// anchors returns the names that links to the headings of a page have.
func anchors(page string) (names []string) {
	for _, match := range markdownHeading.FindAllStringSubmatch(withoutCode(page), -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		names = append(names, strings.ReplaceAll(strings.TrimSpace(name), " ", "-"))
	}
	return names
}

func withoutCode(page string) string { return fencedBlock.ReplaceAllString(page, "") }

func TestBrokenLink(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	content := "# The title\n## What it is, `really`\n```\n# a comment\n```\n"
	if err := os.WriteFile(page, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{
		"#the-title": "", "page.md#what-it-is-really": "", "page.md": "", "https://localhost/absent": "",
		"absent.md": "no such file", "#a-comment": "no such heading", "page.md#absent": "no such heading",
	} {
		if got := brokenLink(t, page, link); got != want {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}
