package share_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/share"
)

func TestRemotes(t *testing.T) {
	for text, want := range map[string]share.Remote{
		":":                        {},
		"dpu:":                     {Peer: "dpu"},
		":images":                  {Share: "images"},
		":images/":                 {Share: "images"},
		":images/.":                {Share: "images"},
		"dpu:images/a":             {Peer: "dpu", Share: "images", Path: "a"},
		"dpu:images/a/":            {Peer: "dpu", Share: "images", Path: "a/"},
		"dpu:images/a/.":           {Peer: "dpu", Share: "images", Path: "a/"},
		"d-1.x_:i/./a//b/./":       {Peer: "d-1.x_", Share: "i", Path: "a/b/"},
		":images//a":               {Share: "images", Path: "a"},
		":images/a:b/c":            {Share: "images", Path: "a:b/c"},
		":i/...":                   {Share: "i", Path: "..."},
		":i/a\xffb":                {Share: "i", Path: "a\xffb"},
		":i/.x.dma-copy-part.done": {Share: "i", Path: ".x.dma-copy-part.done"},
	} {
		got, remote, err := share.ParseRemote(text)
		if err != nil || !remote || got != want {
			t.Errorf("%q is %+v, %t, %v, want %+v", text, got, remote, err, want)
		}
		if again, _, err := share.ParseRemote(got.String()); err != nil || again != got {
			t.Errorf("%q is %+v, %v", got, again, err)
		}
	}
}

func TestLocalPaths(t *testing.T) {
	for _, text := range []string{"", "-", ".", "/", "file", "./a:b", "/a:b", "dir/a:b", "../x:y", "./C:/Users", "/:"} {
		if got, remote, err := share.ParseRemote(text); remote || err != nil || got != (share.Remote{}) {
			t.Errorf("%q is %+v, %t, %v", text, got, remote, err)
		}
	}
}

func TestWrongRemotes(t *testing.T) {
	const local = `a file of this machine whose name contains a colon is written "./`
	for text, want := range map[string]string{
		`C:\Users\x`:                       `"C" before the colon is not the name of a peer`,
		"C:/Users/x":                       `"C" before the colon is not the name of a peer`,
		"c:/Users/x":                       "there is no share between the colon and the slash",
		":/etc/passwd":                     "there is no share between the colon and the slash",
		"03:00.1":                          "",
		"0000:03:00.0":                     `"03:00.0" is not a name of a share`,
		"http://x":                         "there is no share",
		"a b:c":                            `"a b" before the colon`,
		"12:30 backup":                     local,
		":Images":                          local,
		":i/../x":                          `cannot contain ".."`,
		":i/..":                            `cannot contain ".."`,
		":i/a/../b":                        `cannot contain ".."`,
		":i/a\x00b":                        "zero byte",
		":i/.x.dma-copy-part":              "reserved for unfinished files",
		":i/.x.dma-copy-journal/a":         "reserved for unfinished files",
		":i/" + strings.Repeat("a/", 2049): "at most 4096 bytes",
		strings.Repeat("p", 65) + ":i":     "is not the name of a peer",
		":" + strings.Repeat("p", 65):      "the longest has 64 characters",
		"file:with:colons/x":               local,
		"-:x":                              "is not the name of a peer",
		":.":                               local,
		":..":                              local,
	} {
		got, remote, err := share.ParseRemote(text)
		if want == "" {
			if err != nil || !remote {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !remote || got != (share.Remote{}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %t, %v, want %q", text, got, remote, err, want)
		}
	}
}

// FuzzRemote checks ParseRemote against its rule, and that paths are clean.
func FuzzRemote(f *testing.F) {
	for _, text := range []string{
		"dpu:images/a/b", ":", ":i/", "./a:b", "C:/x", ":i/..", ":i/a/./b//", "a:b:c/d", ":i/\x00", "x/y:z",
		":i/.a.dma-copy-new",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, remote, err := share.ParseRemote(text)
		before, _, _ := strings.Cut(text, "/")
		if remote != strings.Contains(before, ":") || err != nil && !remote {
			t.Fatalf("%q is remote: %t, %v", text, remote, err)
		}
		if err != nil || !remote {
			return
		}
		if r.Peer != "" && share.CheckName(r.Peer) != nil || r.Share != "" && share.CheckName(r.Share) != nil {
			t.Fatalf("%q has a name that is not valid: %+v", text, r)
		}
		if again, _, err := share.ParseRemote(r.String()); err != nil || again != r {
			t.Fatalf("%q is %+v, %v, and not %+v", r.String(), again, err, r)
		}
		mustBeClean(t, r.Path)
		_, path, _ := strings.Cut(text, "/")
		if got, want := components(r.Path), components(path); !slices.Equal(got, want) {
			t.Fatalf("%q has %q, not %q", text, got, want)
		}
	})
}

// components returns those that are names.
func components(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

func mustBeClean(t *testing.T, path string) {
	t.Helper()
	for name := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if path != "" && (name == "" || name == "." || name == ".." || strings.Contains(name, "\x00")) {
			t.Fatalf("%q is not clean", path)
		}
	}
	if again, err := share.CleanPath(path); err != nil || again != path {
		t.Fatalf("%q becomes %q, %v", path, again, err)
	}
}
