package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dma-copy/dma-copy/internal/cli/fleet"
	"github.com/dma-copy/dma-copy/internal/share"
)

func TestTargets(t *testing.T) {
	const list = "\ufeff# all of them\r\n" +
		"\n" +
		"one\r\n" +
		"  two:   # without a target\n" +
		"three:other/deep/\t#own\n" +
		"three:#1\n" +
		"four:images/a b#c\n" +
		"ucx://10.0.0.5\n" +
		"ucx://[::1]:7000/own/x"
	target := &share.Remote{Share: "images", Path: "new/"}
	got, err := fleet.ParseTargets(strings.NewReader(strings.Replace(list, "three:#1\n", "", 1)), target)
	want := []fleet.Target{
		{Remote: share.Remote{Peer: "one", Share: "images", Path: "new/"}, Line: 3},
		{Remote: share.Remote{Peer: "two", Share: "images", Path: "new/"}, Line: 4},
		{Remote: share.Remote{Peer: "three", Share: "other", Path: "deep/"}, Line: 5},
		{Remote: share.Remote{Peer: "four", Share: "images", Path: "a b#c"}, Line: 6},
		{Remote: share.Remote{Address: "10.0.0.5:7483", Share: "images", Path: "new/"}, Line: 7},
		{Remote: share.Remote{Address: "[::1]:7000", Share: "own", Path: "x"}, Line: 8},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefusedTargets(t *testing.T) {
	target := &share.Remote{Share: "images"}
	for _, tc := range []struct {
		list, want string
		target     *share.Remote
	}{
		{"", "it names no peer", target},
		{"# one\n", "it names no peer", target},
		{"one\n\none\n", `line 3: duplicate target "one:images", also in line 1`, target},
		{"one\none:\n", "line 2: duplicate target", target},
		{"one\none:images\n", "line 2: duplicate target", target},
		{"one\n", `line 1: peer "one" has no target: write one:SHARE/PATH, or end the command with :SHARE/PATH`, nil},
		{"one:\n", `line 1: peer "one:" has no target: write one:SHARE/PATH, or`, nil},
		{"ucx://h/\n", `line 1: peer "ucx://h/" has no target: write ucx://h:7483/SHARE/PATH, or`, nil},
		{"ucx://h\nucx://h:7483/images\n", `line 2: duplicate target "ucx://h:7483/images", also in line 1`, target},
		{"http://h/x\n", "line 1: ", target},
		{"one two\n", `line 1: "one two" is not a peer: write PEER, PEER:SHARE/PATH or ucx://HOST:PORT`, target},
		{"a/b\n", `line 1: "a/b" is not a peer`, target},
		{":images\n", `line 1: ":images" names no peer`, target},
		{":\n", `line 1: ":" names no peer`, target},
		{"one:images/../x\n", "line 1: ", target},
		{"ok\n" + strings.Repeat("x", fleet.MaxLine+1), "line 2: longer than 8192 bytes", target},
		{strings.Repeat("#\n", fleet.MaxList), "larger than 4194304 bytes: split the list", target},
		{peerLines(fleet.MaxPeers + 1), "line 10001: more than 10000 peers: split the list", target},
	} {
		got, err := fleet.ParseTargets(strings.NewReader(tc.list), tc.target)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%.40q: %d targets, %v, want %s", tc.list, len(got), err, tc.want)
		}
	}
	if got, err := fleet.ParseTargets(strings.NewReader(peerLines(fleet.MaxPeers)), target); err != nil {
		t.Errorf("%d targets: %v", len(got), err)
	}
	if _, err := fleet.ParseTargets(iotest.ErrReader(iotest.ErrTimeout), target); err != iotest.ErrTimeout {
		t.Errorf("an error of the file became %v", err)
	}
}

func peerLines(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "n%d\n", i)
	}
	return lines.String()
}

// FuzzTargets checks that each target has a peer and a share, that none is there twice, and that no list is too long.
func FuzzTargets(f *testing.F) {
	for _, list := range []string{"one\ntwo:x/y # c\n", "a:\n#\n\n", "a b", "x:y/../z", ":i", "a\na", "\x00:x"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		target := share.Remote{Share: "images", Path: "p"}
		targets, err := fleet.ParseTargets(strings.NewReader(list), &target)
		if err != nil {
			return
		}
		seen := map[share.Remote]bool{}
		for i, each := range targets {
			switch {
			case each.Remote.Peer == "" && each.Remote.Address == "" || each.Remote.Share == "":
				t.Fatalf("%q: %+v", list, each)
			case seen[each.Remote]:
				t.Fatalf("%q: %+v is there twice", list, each)
			case i > 0 && each.Line <= targets[i-1].Line:
				t.Fatalf("%q: line %d follows %d", list, each.Line, targets[i-1].Line)
			}
			seen[each.Remote] = true
		}
		if len(targets) == 0 || len(targets) > fleet.MaxPeers {
			t.Fatalf("%d targets", len(targets))
		}
	})
}
