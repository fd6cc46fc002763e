package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

func TestHardLinks(t *testing.T) {
	root := t.TempDir()
	build(t, root, "b/first", "a = b/first", "b/again = b/first", "c/sym -> ../a", "other", "other2 = other", "single")
	mustList(t, root, tree.Options{HardLinks: true},
		"a (b/first)", "b/", "b/again = a", "b/first = a", "c/", "c/sym -> ../a", "other", "other2 = other", "single")
	mustList(t, root, tree.Options{},
		"a (b/first)", "b/", "b/again (b/first)", "b/first", "c/", "c/sym -> ../a", "other", "other2 (other)", "single")
}

func TestHardLinkToWhatIsExcludedIsAFile(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "b = a", "c = a")
	filter, err := tree.NewFilter([]tree.Rule{exclude("a")})
	must(t, err)
	mustList(t, root, tree.Options{HardLinks: true, Filter: filter}, "b (a)", "c = b")
}

func TestHardLinksBesideSymlinksThatAreFollowed(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a", "b -> a", "c -> a", "d = a", "e = a")
	mustList(t, root, tree.Options{HardLinks: true, Links: tree.LinksFollow},
		"a", "b = a", "c = a", "d = a", "e = a")
}

func TestHardLinksThatAreTooMany(t *testing.T) {
	root := t.TempDir()
	var warnings []string
	warn := func(path, why string) { warnings = append(warnings, path+" "+why) }
	build(t, root, "a0", "a1", "a2", "a3", "z0 = a0", "z1 = a1", "z2 = a2", "z3 = a3")
	want := []string{"a0", "a1", "a2", "a3", "z0 = a0", "z1 = a1", "z2 (a2)", "z3 (a3)"}
	w := openLimited(t, root, tree.Options{HardLinks: true, Warn: warn}, tree.Limits{LinkedFiles: 2})
	if got := describeAll(t, w); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found %q", got)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "too many hard links") {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestHardLinksWhoseNamesAreAllFoundAreForgotten(t *testing.T) {
	root := t.TempDir()
	var want []string
	for i := range 5 {
		name := fmt.Sprint("f", i)
		build(t, root, name, name+"x = "+name)
		want = append(want, name, name+"x = "+name)
	}
	w := openLimited(t, root, tree.Options{HardLinks: true}, tree.Limits{LinkedFiles: 1})
	if got := describeAll(t, w); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found %q", got)
	}
}
