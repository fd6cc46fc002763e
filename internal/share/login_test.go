package share

import (
	"strings"
	"testing"
)

func TestParseLoginURL(t *testing.T) {
	for _, tc := range []struct{ text, login, directory, path, back string }{
		{"ssh://dpu/", "dpu", "/", "", "ssh://dpu/"},
		{"ssh://dpu/srv/", "dpu", "/srv", "", "ssh://dpu/srv/"},
		{"ssh://dpu/srv/a//b/", "dpu", "/srv/a/b", "", "ssh://dpu/srv/a/b/"},
		{"ssh://dpu/srv/.", "dpu", "/srv", ".", "ssh://dpu/srv/."},
		{"ssh://dpu/x", "dpu", "/", "x", "ssh://dpu/x"},
		{"ssh://ubuntu@dpu:2222/srv/x", "ubuntu@dpu:2222", "/srv", "x", "ssh://ubuntu@dpu:2222/srv/x"},
		{"ssh://a@b.c@[fe80::1%eth0]/x", "a@b.c@[fe80::1%eth0]", "/", "x", "ssh://a@b.c@[fe80::1%eth0]/x"},
		{"ssh://[::1]:22/srv/x", "[::1]:22", "/srv", "x", "ssh://[::1]:22/srv/x"},
		{"ssh://dpu/~/x", "dpu", "~", "x", "ssh://dpu/~/x"},
		{"ssh://dpu/~", "dpu", "~", "", "ssh://dpu/~/"},
		{"ssh://dpu/./photos/2026/x", "dpu", "~/photos/2026", "x", "ssh://dpu/~/photos/2026/x"},
		{"ssh://dpu/srv/*.img", "dpu", "/srv", "*.img", "ssh://dpu/srv/*.img"},
		{"ssh://dpu/srv/2*/day/x", "dpu", "/srv", "2*/day/x", "ssh://dpu/srv/2*/day/x"},
	} {
		r, remote, err := ParseRemote(tc.text)
		if err != nil || !remote || r.Login.String() != tc.login || r.Share != tc.directory || r.Path != tc.path {
			t.Errorf("%s: %+v, remote %t: %v", tc.text, r, remote, err)
			continue
		}
		again, _, err := ParseRemote(r.String())
		if r.String() != tc.back || again != r || err != nil || r.ShareName() != LoginShare {
			t.Errorf("%s: written as %s, read again as %+v: %v", tc.text, r, again, err)
		}
	}
}

// Nothing of an argument may become an option of ssh, or text for a shell.
func TestRefusedLogins(t *testing.T) {
	for _, text := range []string{
		"ssh://-oProxyCommand=x/a", "ssh://-v@dpu/a", "ssh://@dpu/a", "ssh:///a", "ssh://dpu", "ssh://dpu:0/a",
		"ssh://dpu:/a", "ssh://dpu:22222222/a", "ssh://a b/x", "ssh://`id`@dpu/x", "ssh://u;id@dpu/x", "ssh://$x/x",
		"ssh://[dpu]/x", "ssh://::1/x", "ssh://dpu/../x", "ssh://dpu/a/../x", "ssh://dpu/a\x00", "ssh://dpu\n/x",
		"ssh://" + strings.Repeat("u", 65) + "@dpu/x",
	} {
		if r, remote, err := ParseRemote(text); err == nil || !remote {
			t.Errorf("%q: accepted as %+v, remote %t", text, r, remote)
		}
	}
}

func TestUnite(t *testing.T) {
	for _, tc := range []struct{ places, directory, paths string }{
		{"ssh://dpu/srv/a ssh://dpu/srv/b", "/srv", "a b"},
		{"ssh://dpu/srv/x/a ssh://dpu/srv/y/b", "/srv", "x/a y/b"},
		{"ssh://dpu/srv/x/ ssh://dpu/srv/y/.", "/srv", "x/ y/."},
		{"ssh://dpu/a ssh://dpu/srv/b ssh://dpu/srv/c/", "/", "a srv/b srv/c/"},
		{"ssh://dpu/~/a ssh://dpu/~/photos/b", "~", "a photos/b"},
		{"ssh://dpu/srv/abc/x ssh://dpu/srv/ab/x", "/srv", "abc/x ab/x"},
		{"ssh://dpu/~/a ssh://dpu/srv/b", "", ""},
		{"one:in/a two:in/b", "in", "a b"},
	} {
		var places []Remote
		for text := range strings.FieldsSeq(tc.places) {
			r, _, err := ParseRemote(text)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, r)
		}
		united, err := Unite(places)
		if refused := tc.directory == ""; refused != (err != nil) {
			t.Errorf("%s: %v", tc.places, err)
		}
		var paths []string
		for _, each := range united {
			paths = append(paths, each.Path)
			if each.Share != tc.directory {
				t.Errorf("%s: directory %s", tc.places, each.Share)
			}
		}
		if got := strings.Join(paths, " "); got != tc.paths {
			t.Errorf("%s: paths %s", tc.places, got)
		}
	}
}
