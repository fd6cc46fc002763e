package tree_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

func TestParsePaths(t *testing.T) {
	longest := strings.Repeat("n/", tree.MaxPath/2-1) + "nn"
	for text, want := range map[string][]string{
		"":                               {},
		"\n\n":                           {},
		"b\na/c\n":                       {"b", "a/c"},
		"./a//b/\n.\nlast":               {"a/b", "last"},
		" a \n#b\n..c\nd..\n":            {" a ", "#b", "..c", "d.."},
		"\ufeffa\r\nb\r\n\r\n\xff\r\r\n": {"a", "b", "\xff\r"},
		longest + "\n" + longest:         {longest, longest},
		longest + "\n" + "a\n" + "b":     {longest, "a", "b"},
	} {
		got, err := tree.ParsePaths(strings.NewReader(text), '\n')
		if err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("%.40q: %.40q %v, want %.40q", text, got, err, want)
		}
	}
	got, err := tree.ParsePaths(strings.NewReader("a\nb\x00\x00c"), 0)
	if err != nil || !slices.Equal(got, []string{"a\nb", "c"}) {
		t.Errorf("with zero bytes: %q %v", got, err)
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	for text, words := range map[string]string{
		"a\n/etc/passwd\n":                       `path 2: "/etc/passwd" is absolute`,
		"a\n\n../b":                              `path 3: "../b" contains ".."`,
		"a/..":                                   `path 1: "a/.." contains ".."`,
		"a\x00b\n":                               `path 1: "a\x00b" contains a zero byte`,
		"a\n" + strings.Repeat("x", 4097) + "\n": `has more than 4096 bytes`,
		"a\n" + strings.Repeat("x", 1<<20):       `a path after "a" has more than 4096 bytes`,
	} {
		_, err := tree.ParsePaths(strings.NewReader(text), '\n')
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%.20q: %v, want %q", text, err, words)
		}
		if strings.HasSuffix(text, "\n") {
			_, err := tree.Open(disk.OS, t.TempDir(), tree.Options{Only: strings.Split(text, "\n")})
			_, after, _ := strings.Cut(words, ": ")
			if err == nil || !strings.Contains(err.Error(), after) {
				t.Errorf("%.20q: %v, want %q", text, err, after)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := tree.ParsePaths(iotest.ErrReader(broken), '\n'); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyListedPaths(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/c", "a/b/d", "a/e", "a-b", "dir/x", "dir/sub/y", "link -> dir", "z")
	for name, c := range map[string]struct{ only, want []string }{
		"nothing":                 {[]string{}, nil},
		"the root":                {[]string{"."}, nil},
		"a file with its parents": {[]string{"a/b/c"}, []string{"a/", "a/b/", "a/b/c"}},
		"a directory alone":       {[]string{"dir"}, []string{"dir/"}},
		"a slash at the end":      {[]string{"dir/"}, []string{"dir/"}},
		"a directory and a file":  {[]string{"dir/x", "dir"}, []string{"dir/", "dir/x"}},
		"in the order of the walk": {
			[]string{"z", "a/e", "a-b", "a/b/d", "z", "./a/b/d", "a", "link"},
			[]string{"a/", "a/b/", "a/b/d", "a/e", "a-b", "link -> dir", "z"},
		},
		"what does not exist": {
			[]string{"a/absent/x", "absent", "dir/absent", "z"},
			[]string{
				"a/", "! a/absent does not exist: correct the list of files",
				"! absent does not exist: correct the list of files",
				"dir/", "! dir/absent does not exist: correct the list of files", "z",
			},
		},
		"below a file": {
			[]string{"a/e", "a/e/f/g", "link/x"},
			[]string{
				"a/", "! a/e is not a directory, so a/e/f/g does not exist: correct the list of files",
				"! link is not a directory, so link/x does not exist: correct the list of files",
			},
		},
	} {
		t.Run(name, func(t *testing.T) { mustList(t, root, tree.Options{Only: c.only}, c.want...) })
	}
	filter, err := tree.NewFilter([]tree.Rule{exclude("b/"), exclude("z")})
	must(t, err)
	mustList(t, root, tree.Options{Only: []string{"a/b/c", "a/e", "z"}, Filter: filter}, "a/", "a/e")
	mustList(t, root, tree.Options{Only: []string{"link/x"}, Links: tree.LinksFollow}, "link/", "link/x (dir/x)")
}
