package tree_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var follow = tree.Options{Links: tree.LinksFollow}

func TestFollowedSymlinks(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/file", "a/up -> ../c/file", "c/file", "c/in -> ./../a//b/.", "l1 -> l2", "l2 -> c/in/file",
		"via -> a/../c/file", "slash -> c/")
	mustList(t, root, follow,
		"a/", "a/b/", "a/b/file", "a/up (c/file)",
		"c/", "c/file", "c/in/", "c/in/file (a/b/file)",
		"l1 (a/b/file)", "l2 (a/b/file)",
		"slash/", "slash/file (c/file)", "slash/in/", "slash/in/file (a/b/file)",
		"via (c/file)")
}

func TestParentOfAFollowedSymlinkIsThatOfItsTarget(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/file", "a/right", "right", "to -> a/b", "x -> to/../right")
	mustList(t, root, follow, "a/", "a/b/", "a/b/file", "a/right", "right", "to/", "to/file (a/b/file)", "x (a/right)")
}

func TestSymlinksThatAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	build(t, outside, "secret", "root/x")
	root := filepath.Join(outside, "root")
	build(t, root, "absolute -> "+root+"/x", "dangling -> absent/y",
		"dir/out -> ../../secret", "dir/back -> ../../root/x",
		"file-slash -> x/", "ring -> ring", "up -> ..", "below -> x/y")
	const (
		exclude = ": copy it as a symlink, or exclude it"
		repair  = ": fix or remove it, or copy it as a symlink"
	)
	out := func(path, to string) string {
		return "! symlink " + path + " points out of the tree, to " + to + exclude
	}
	got := list(t, root, follow)
	want := []string{
		"! symlink absolute points out of the tree, to ", "! dangling symlink: below points to x/y" + repair,
		"! dangling symlink: dangling points to absent/y" + repair,
		"dir/", out("dir/back", "../../root/x"), out("dir/out", "../../secret"),
		"! dangling symlink: file-slash points to x/" + repair, "! symlink loop: ring points to ring" + exclude,
		out("up", ".."), "x (root/x)",
	}
	if len(got) != len(want) || len(got[0]) < len(want[0]) || got[0][:len(want[0])] != want[0] {
		t.Fatalf("found %q", got)
	}
	for i := 1; i < len(want); i++ {
		if got[i] != want[i] {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}

func TestLoopsOfDirectoriesEnd(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/self -> .", "a/b/top -> ../..", "a/b/up -> ..", "c/to -> ../d", "d/to -> ../c",
		"s/l -> ../t/s2", "t/s2/up -> ..")
	const next = ": copy it as a symlink, or exclude it"
	mustList(t, root, follow,
		"a/", "a/b/", "! symlink loop: a/b/self points to ."+next, "! symlink loop: a/b/top points to ../.."+next,
		"! symlink loop: a/b/up points to .."+next,
		"c/", "c/to/", "! symlink loop: c/to/to points to ../c"+next,
		"d/", "d/to/", "! symlink loop: d/to/to points to ../d"+next,
		"s/", "s/l/", "s/l/up/", "! symlink loop: s/l/up/s2 points to s/l/up/s2"+next,
		"t/", "t/s2/", "! symlink loop: t/s2/up points to .."+next)
}

func TestSymlinksOneAfterTheOther(t *testing.T) {
	root := t.TempDir()
	build(t, root, "x")
	target := "x"
	for i := range 45 {
		name := string(rune('A'+i/10)) + string(rune('0'+i%10))
		must(t, os.Symlink(target, filepath.Join(root, name)))
		target = name
	}
	failed := 0
	for _, entry := range list(t, root, follow) {
		if entry[0] == '!' {
			failed++
		}
	}
	if failed != 4 {
		t.Errorf("%d of 45 symlinks are not followed, want the last 4", failed)
	}
}

func TestFollowedSpecialFileIsLeftOut(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/", "z -> a/fifo")
	must(t, unix.Mkfifo(filepath.Join(root, "a/fifo"), 0o600))
	warnings := 0
	mustList(t, root, tree.Options{Links: tree.LinksFollow, Warn: func(string, string) { warnings++ }}, "a/")
	if warnings != 2 {
		t.Errorf("%d warnings", warnings)
	}
}

func TestFollowedFileHasTheInfoOfItsTarget(t *testing.T) {
	root := t.TempDir()
	build(t, root, "dir/file", "link -> dir/file")
	w, err := tree.Open(disk.OS, root, follow)
	must(t, err)
	defer w.Close()
	entries := walk(t, w)
	file, link := entries[2], entries[3]
	if link.Kind != wire.EntryFile || link.Info != file.Info || link.Link != "" || link.Path() != "link" {
		t.Errorf("the link is %+v, the file %+v", link, file)
	}
}
