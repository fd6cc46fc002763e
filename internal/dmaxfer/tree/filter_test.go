package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

type rules = []tree.Rule

func include(pattern string) tree.Rule { return tree.Rule{Include: true, Pattern: pattern} }

func exclude(pattern string) tree.Rule { return tree.Rule{Pattern: pattern} }

// filtered are the entries of the tree of TestFilters.
var filtered = []string{
	"README.md", "build/", "build/keep.txt", "build/main.o",
	"docs/", "docs/a.md", "docs/build/", "docs/build/page.html", "docs/deep/", "docs/deep/er/", "docs/deep/er/a.md",
	"main.o", "src/", "src/build", "src/main.go", "src/main.o",
	"src/{a,b}", "weird [x]",
}

// without returns the filtered entries except for those below the given prefixes.
func without(prefixes ...string) (left []string) {
	for _, name := range filtered {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			left = append(left, name)
		}
	}
	return left
}

func TestFilters(t *testing.T) {
	root := t.TempDir()
	build(t, root, filtered...)
	for name, c := range map[string]struct {
		rules rules
		want  []string
	}{
		"none":          {nil, filtered},
		"name":          {rules{exclude("build")}, without("build/", "docs/build/", "src/build")},
		"directory":     {rules{exclude("build/")}, without("build/", "docs/build/")},
		"anchored":      {rules{exclude("/build")}, without("build/")},
		"path":          {rules{exclude("docs/build")}, without("docs/build/")},
		"star":          {rules{exclude("*.o")}, without("build/main.o", "main.o", "src/main.o")},
		"anchored star": {rules{exclude("/*.o")}, without("main.o")},
		"star in path":  {rules{exclude("*/main.o")}, without("build/main.o", "src/main.o")},
		"one level":     {rules{exclude("docs/*.md")}, without("docs/a.md")},
		"all levels":    {rules{exclude("docs/**/*.md")}, without("docs/a.md", "docs/deep/er/a.md")},
		"content":       {rules{exclude("docs/**")}, without("docs/a", "docs/b", "docs/d")},
		"any parent":    {rules{exclude("**/er")}, without("docs/deep/er/")},
		"any name":      {rules{exclude("**")}, nil},
		"class":         {rules{exclude("*.[a-o]")}, without("build/main.o", "main.o", "src/main.o")},
		"negated class": {rules{exclude("*.[!o]*")}, without("README", "build/keep", "docs/a", "docs/build/p",
			"docs/deep/er/a", "src/main.go")},
		"class and slash": {rules{exclude("/src[!x]build")}, filtered},
		"question mark":   {rules{exclude("main.?")}, without("build/main.o", "main.o", "src/main.o")},
		"braces":          {rules{exclude("{a,b}")}, without("src/{")},
		"escaped":         {rules{exclude(`weird \[x\]`)}, without("weird")},
		"class with ]":    {rules{exclude("weird [[]x[]]")}, without("weird")},
		"first wins":      {rules{include("src/main.o"), exclude("*.o")}, without("build/main.o", "main.o")},
		"later is late":   {rules{exclude("*.o"), include("src/main.o")}, without("build/main", "main", "src/main.o")},
		"below excluded":  {rules{include("build/keep.txt"), exclude("build/")}, without("build/", "docs/build/")},
		"parent included": {rules{include("/build/"), exclude("build/")}, without("docs/build/")},
		"only some names": {rules{include("*/"), include("*.md"), exclude("*")}, []string{
			"README.md", "build/", "docs/", "docs/a.md", "docs/build/", "docs/deep/", "docs/deep/er/",
			"docs/deep/er/a.md", "src/"}},
		"only a directory": {rules{include("/src"), include("/src/**"), exclude("*")}, []string{
			"src/", "src/build", "src/main.go", "src/main.o", "src/{a,b}"}},
	} {
		t.Run(name, func(t *testing.T) {
			filter, err := tree.NewFilter(c.rules)
			must(t, err)
			mustList(t, root, tree.Options{Filter: filter}, c.want...)
		})
	}
}

func TestPatternsAndNamesThatAreNotUTF8(t *testing.T) {
	root := t.TempDir()
	build(t, root, "\xfe", "\xff", "x\xff", "\xc3\xa9", "\xc3\xa9\xff")
	for pattern, want := range map[string][]string{
		"\xff":         {"x\xff", "\xc3\xa9", "\xc3\xa9\xff", "\xfe"},
		"?":            {"x\xff", "\xc3\xa9\xff"},
		"\xc3\xa9*":    {"x\xff", "\xfe", "\xff"},
		"*\xff":        {"\xc3\xa9", "\xfe"},
		"[\xfd-\xfe]":  {"x\xff", "\xc3\xa9", "\xc3\xa9\xff", "\xff"},
		"[!\xfd-\xfe]": {"x\xff", "\xc3\xa9", "\xc3\xa9\xff", "\xfe"},
	} {
		filter, err := tree.NewFilter(rules{exclude(pattern)})
		must(t, err)
		if got := list(t, root, tree.Options{Filter: filter}); !slices.Equal(got, want) {
			t.Errorf("without %q there is %q, want %q", pattern, got, want)
		}
	}
}

func TestMalformedPatterns(t *testing.T) {
	for pattern, word := range map[string]string{
		"": "nothing", "/": "nothing", "//": "nothing",
		"[ab": `without "]"`, "a/[!": `without "]"`, "[]": `without "]"`,
		`a\`: `ends with`, "!a": "include", "[[:alpha:]]": "A-Z",
	} {
		_, err := tree.NewFilter(rules{exclude("good"), exclude(pattern)})
		if err == nil || !strings.Contains(err.Error(), "malformed pattern") || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, want %q", pattern, err, word)
		}
	}
}

func TestParsePatterns(t *testing.T) {
	text := "\ufeff# objects\r\n\r\n*.o\r\n/\n!\n!/\n//\n!keep.o  \r\n\\#x\n\\!y\n!!z\nspace\\ \n  lead"
	got, err := tree.ParsePatterns(strings.NewReader(text))
	must(t, err)
	want := rules{
		exclude("  lead"), exclude(`space\ `), include(`\!z`), exclude(`\!y`), exclude(`\#x`),
		include("keep.o"), exclude("*.o"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for text, words := range map[string]string{
		"a\n[b\n":                          `line 2: malformed pattern "[b"`,
		"a\n" + strings.Repeat("x", 1<<17): "line 2 has more than 65536 bytes",
		"a\n\n!/[b":                        `line 3: malformed pattern "/[b"`,
	} {
		if _, err := tree.ParsePatterns(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), words) {
			t.Errorf("%v does not start with %q", err, words)
		}
	}
}

// TestPatternsMatchAsInGit compares files of patterns with what git does not ignore.
func TestPatternsMatchAsInGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	build(t, root, "a", "ab/a", "ab/b/a", "ab/b/ab", "b/a/b/a", "b/ab")
	build(t, root, "ba/x{y}", "ba/[", "ba/]", "ba/ ", "ba/#", "ba/!", "ba/\\")
	must(t, exec.Command(git, "-C", root, "init", "-q").Run())
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{
			"a", "b", "a", "b", "/", "/", "*", "**", "**/", "/**", "?", "[ab]", "[!a]", "[^b]", "[]]", "[a-b]",
			"{y}", "{a,b}", "\\[", "\\\\", " ", "\\ ", "#", "\\#", "!", "\\!",
		})
		line := rapid.Map(rapid.SliceOfN(part, 1, 5), func(parts []string) string { return strings.Join(parts, "") })
		lines := rapid.SliceOfN(line.Filter(isMatchedWhole), 1, 4).Draw(t, "lines")
		text := strings.Join(lines, "\n") + "\n"
		rules, err := tree.ParsePatterns(strings.NewReader(text))
		if err != nil {
			t.Skip(err)
		}
		filter, err := tree.NewFilter(rules)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := filesOf(t, root, filter), notIgnored(t, git, root, text); !slices.Equal(got, want) {
			t.Errorf("with %q there is %q, want %q", text, got, want)
		}
	})
}

// isMatchedWhole reports whether git matches a pattern in one go. It compares a literal beginning apart from the rest,
// and takes "**" at the beginning of the rest for a name of its own; two slashes behind it are a name without letters.
func isMatchedWhole(pattern string) bool {
	before, after, found := strings.Cut(pattern, "**")
	return !found || (before == "" || strings.HasSuffix(before, "/")) && !strings.Contains(after, "//")
}

// filesOf returns the paths of the files that a filter does not exclude.
func filesOf(t *rapid.T, root string, filter *tree.Filter) (files []string) {
	w, err := tree.Open(disk.OS, root, tree.Options{Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		e, err := w.Next()
		if err != nil {
			break
		}
		if e.Dir != nil && !strings.HasPrefix(e.Path(), ".git/") {
			files = append(files, e.Path())
		}
		e.Release()
	}
	slices.Sort(files)
	return files
}

// notIgnored returns the paths of the files that git does not ignore.
func notIgnored(t *rapid.T, git, root, patterns string) []string {
	file := filepath.Join(root, ".git", "patterns")
	if err := os.WriteFile(file, []byte(patterns), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(git, "-C", root, "ls-files", "-z", "--others", "--exclude-from", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(files)
	return slices.DeleteFunc(files, func(name string) bool { return name == "" })
}
