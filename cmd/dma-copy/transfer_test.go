package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/share"
)

// planned returns what a push of sources to a target does: PLACE|NAME|FLAGS and what the user reads, for each source.
func planned(t *testing.T, target string, sources ...string) (string, error) {
	t.Helper()
	remote, _, err := share.ParseRemote(target)
	must(t, err)
	transfers := transfers{settings: &config.Transfer{Sends: true, Local: sources, Remote: []share.Remote{remote}}}
	all, err := transfers.planPush()
	var lines []string
	for _, e := range all {
		line := e.request.Place.Share + "/" + e.request.Place.Path + "|" + e.request.Name
		if e.request.Into {
			line += "|into"
		}
		if e.request.Create {
			line += "|create"
		}
		lines = append(lines, line+" "+e.remote.String())
	}
	return strings.Join(lines, "; "), err
}

func TestPlanOfAPush(t *testing.T) {
	inNewDir(t, "file", "content")
	must(t, os.MkdirAll("tree/file", 0o700))
	for _, tc := range []struct{ sources, target, want string }{
		{"file", ":in", "in/|file :in/file"},
		{"file", ":in/name", "in/name|file :in/name"},
		{"file", ":in/dir/", "in/dir|file|into|create :in/dir/file"},
		{"tree", ":in", "in/| :in"},
		{"tree", ":in/new", "in/new| :in/new"},
		{"tree/", ":in/new/", "in/new| :in/new/"},
		{"file tree", "dpu:in", "in/|file|into dpu:in/file; in/|tree|into dpu:in/tree"},
		{"file tree/", ":in/dir", "in/dir|file|into|create :in/dir/file; in/dir|tree|into|create :in/dir/tree"},
		{"-", ":in/name", "in/name| :in/name"},
		{"missing", ":in/dir/", "in/dir|missing|into|create :in/dir/missing"},
	} {
		if got, err := planned(t, tc.target, strings.Fields(tc.sources)...); err != nil || got != tc.want {
			t.Errorf("%s to %s: %s, %v, want %s", tc.sources, tc.target, got, err, tc.want)
		}
	}
	here, err := filepath.Abs(".")
	must(t, err)
	got, err := planned(t, ":in", ".", "file")
	if err != nil || !strings.Contains(got, "|"+filepath.Base(here)+"|into") {
		t.Errorf("the working directory and a file: %s, %v", got, err)
	}
	for sources, want := range map[string]string{
		"file tree/file": `two sources have the name "file": copy them one by one`,
		"/ file":         `SRC "/" has no name that it could have in the share: copy it alone`,
	} {
		if got, err := planned(t, ":in", strings.Fields(sources)...); err == nil || err.Error() != want {
			t.Errorf("%s: %s, %v", sources, got, err)
		}
	}
}

func TestNameForPeers(t *testing.T) {
	long := strings.Repeat("n", 65)
	for name, want := range map[string]string{
		"dpu-7.example": "dpu-7.example", long: "", long[1:]: long[1:], "b\u00e4r": "", "a\nb": "", "": "",
	} {
		if got := nameForPeers(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
