package share_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// build creates files, directories with a slash at the end, and symlinks "a -> b" below root, and what is above them.
func build(t testing.TB, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		link, text, isSymlink := strings.Cut(name, " -> ")
		path := filepath.Join(root, link)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case isSymlink:
			must(t, os.Symlink(text, path))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		default:
			must(t, os.WriteFile(path, []byte(name), 0o640))
		}
	}
}

// mustOpen opens a share of the directory "share" below parent, with everything below its names.
func mustOpen(t testing.TB, parent string, access share.Access, names ...string) *share.Opened {
	t.Helper()
	root := filepath.Join(parent, "share")
	build(t, root, append(names, "./")...)
	o, err := share.Open(share.Share{Name: "inbox", Path: root, Access: access}, disk.OS)
	must(t, err)
	t.Cleanup(func() { must(t, o.Close()) })
	return o
}

// list returns a line for each entry.
func list(t testing.TB, o *share.Opened, path string, recursive bool) (lines []string, err error) {
	t.Helper()
	err = o.List(context.Background(), path, share.ListOptions{Recursive: recursive}, func(e share.Entry) error {
		lines = append(lines, describe(e))
		return nil
	})
	return lines, err
}

func describe(e share.Entry) string {
	line := fmt.Sprintf("%d %s %s %o %d", e.Depth, e.Kind, e.Path, e.Mode, e.Size)
	if e.Link != "" {
		line += " -> " + e.Link
	}
	return line
}

var content = []string{
	"a/", "a/b/", "a/b/file", "a-b", "link -> a", "out -> /etc", "dangling -> absent", ".x.dma-copy-part",
	".x.dma-copy-journal",
}

func TestList(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.Read, content...)
	must(t, unix.Mkfifo(filepath.Join(o.Path, "pipe"), 0o600))
	must(t, os.Chmod(filepath.Join(o.Path, "a/b"), fs.ModeSticky|0o711))
	all := []string{
		"0 directory  755 0", "1 directory a 755 0", "2 directory a/b 1711 0", "3 file a/b/file 640 8",
		"1 file a-b 640 3", "1 symlink dangling 777 0 -> absent", "1 symlink link 777 0 -> a",
		"1 symlink out 777 0 -> /etc",
	}
	below := []string{"0 directory  755 0", "1 directory b 1711 0", "2 file b/file 640 8"}
	for _, c := range []struct {
		path      string
		recursive bool
		want      []string
	}{
		{"", true, all}, {"", false, slices.Delete(slices.Clone(all), 2, 4)},
		{"a", true, below}, {"a/", true, below}, {"link", true, below}, {"link/", false, below[:2]},
		{"a/b/file", true, []string{"0 file  640 8"}}, {"link/b/file", false, []string{"0 file  640 8"}},
		{"dangling", true, []string{"0 symlink  777 0 -> absent"}}, {"out", true, []string{"0 symlink  777 0 -> /etc"}},
	} {
		if got, err := list(t, o, c.path, c.recursive); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q, recursive %t: got %q, %v, want %q", c.path, c.recursive, got, err, c.want)
		}
	}
	for path, want := range map[string]error{
		"absent": fs.ErrNotExist, "a-b/": unix.ENOTDIR, "out/": disk.ErrOutside, "out/passwd": disk.ErrOutside,
		"pipe": disk.ErrSource, "dangling/": fs.ErrNotExist,
	} {
		if got, err := list(t, o, path, true); !errors.Is(err, want) || !errors.Is(err, disk.ErrSource) || got != nil {
			t.Errorf("%q: %q, %v, want %v", path, got, err, want)
		}
	}
}

// What a deletion has to know is listed on request: special files, and which directories are mount points.
func TestListAll(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.Read, "a/b/file", "a/c/", "f")
	must(t, unix.Mkfifo(filepath.Join(o.Path, "a/pipe"), 0o600))
	mounted := filepath.Join(o.Path, "a/b")
	isMounted := unix.Mount(mounted, mounted, "", unix.MS_BIND, "") == nil // takes CAP_SYS_ADMIN
	if isMounted {
		t.Cleanup(func() { must(t, unix.Unmount(mounted, unix.MNT_DETACH)) })
	}
	want := map[string]share.Entry{
		"": {Kind: wire.EntryDirectory}, "a": {Kind: wire.EntryDirectory},
		"a/b": {Kind: wire.EntryDirectory, Mounted: isMounted}, "a/b/file": {Kind: wire.EntryFile},
		"a/c": {Kind: wire.EntryDirectory}, "a/pipe": {Kind: wire.EntrySpecial},
		"f": {Kind: wire.EntryFile},
	}
	must(t, o.List(t.Context(), "", share.ListOptions{Recursive: true, All: true}, func(e share.Entry) error {
		if w, found := want[e.Path]; !found || w.Kind != e.Kind || w.Mounted != e.Mounted {
			t.Errorf("%s is a %s, mounted %t", e.Path, e.Kind, e.Mounted)
		}
		delete(want, e.Path)
		return nil
	}))
	if len(want) > 0 {
		t.Errorf("%v are not listed", want)
	}
}

func TestStat(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.Read, content...)
	at := disk.Timestamp{Sec: 1_000_000_000, Nsec: 7}
	dir, err := disk.OS.OpenDir(o.Path + "/a")
	must(t, err)
	defer dir.Close()
	must(t, dir.SetModified(at))
	for path, want := range map[string]string{
		"": "0 directory  755 0", "a": "0 directory  755 0", "a/": "0 directory  755 0", "a-b": "0 file  640 3",
		"link": "0 symlink  777 0 -> a", "link/": "0 directory  755 0", "link/b/file": "0 file  640 8",
	} {
		if got, err := o.Stat(path, share.ListOptions{}); err != nil || describe(got) != want {
			t.Errorf("%q is %s, %v, want %s", path, describe(got), err, want)
		}
	}
	if got, err := o.Stat("a", share.ListOptions{}); err != nil || got.Modified != at {
		t.Errorf("the time is %v, %v", got.Modified, err)
	}
	for _, path := range []string{"absent", "out/passwd", "a-b/", "absent/x"} {
		if got, err := o.Stat(path, share.ListOptions{}); !errors.Is(err, disk.ErrSource) || got != (share.Entry{}) {
			t.Errorf("%q is %+v, %v", path, got, err)
		}
	}
}

// A special file is an entry only where all are asked for, and so is a mount point.
func TestStatOfAll(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/d", "/there/disk")
	m.Special("/there/pipe", fs.ModeNamedPipe)
	m.Mount("/there/disk")
	o, err := share.Open(share.Share{Name: "s", Path: "/there", Access: share.Read}, m)
	must(t, err)
	defer o.Close()
	all := share.ListOptions{All: true}
	for path, want := range map[string]share.Entry{
		"d":    {Kind: wire.EntryDirectory},
		"disk": {Kind: wire.EntryDirectory, Mounted: true},
		"pipe": {Kind: wire.EntrySpecial},
	} {
		if got, err := o.Stat(path, all); err != nil || got.Kind != want.Kind || got.Mounted != want.Mounted {
			t.Errorf("%s is a %s, mounted %t, %v", path, got.Kind, got.Mounted, err)
		}
	}
	if _, err := o.Stat("pipe", share.ListOptions{}); !errors.Is(err, disk.ErrSource) {
		t.Errorf("a FIFO that was not asked for: %v", err)
	}
	if got, err := o.Stat("disk", share.ListOptions{}); err != nil || got.Mounted {
		t.Errorf("mounted %t, %v", got.Mounted, err)
	}
	var listed []share.Entry
	must(t, o.List(t.Context(), "pipe", all, func(e share.Entry) error { listed = append(listed, e); return nil }))
	if len(listed) != 1 || listed[0].Kind != wire.EntrySpecial || listed[0].Path != "" {
		t.Errorf("the list of a FIFO is %+v", listed)
	}
}

func TestNameOfAnEntry(t *testing.T) {
	for path, want := range map[string]string{"": "", "a": "a", "a/b": "b"} {
		if e := (share.Entry{Path: path}); e.Name() != want {
			t.Errorf("%q has the name %q", path, e.Name())
		}
	}
}

// What cannot be listed is reported after the rest, and what has been removed meanwhile is not.
func TestIncompleteLists(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/a", "/there/b")
	m.Put("/there/a/file", "x")
	m.Put("/there/b/file", "x")
	m.Put("/there/c", "x")
	for cause, want := range map[error]error{unix.EACCES: unix.EACCES, unix.ENOENT: nil} {
		on := disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
			if op == "opendir" && name == "b" || op == "open" && name == "b" {
				return &disktest.Fault{Err: cause}
			}
			return nil
		})
		o, err := share.Open(share.Share{Name: "s", Path: "/there", Access: share.Read}, on)
		must(t, err)
		got, err := list(t, o, "", true)
		if !errors.Is(err, want) || want != nil && !errors.Is(err, disk.ErrSource) {
			t.Errorf("the error is %v, want %v", err, want)
		}
		if len(got) != 4 || !strings.HasPrefix(got[3], "1 file c") {
			t.Errorf("after %v there are %q", cause, got)
		}
	}
}

func TestListEndsWithItsCaller(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.Read, "a", "b", "c")
	wrong := errors.New("wrong")
	calls := 0
	recursive := share.ListOptions{Recursive: true}
	err := o.List(t.Context(), "", recursive, func(share.Entry) error { calls++; return wrong })
	if !errors.Is(err, wrong) || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = o.List(ctx, "", share.ListOptions{Recursive: true}, func(e share.Entry) error {
		if e.Depth > 0 {
			t.Errorf("%s was listed", e.Path)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestRemove(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.ReadWrite, content...)
	build(t, filepath.Dir(o.Path), "outside/file")
	build(t, o.Path, "up -> ../outside")
	for _, path := range []string{
		"", ".", "..", "../outside/file", "up/file", "out/passwd", "link/b/file", "a", "absent", "/etc/passwd", "a/b/",
	} {
		if err := remove(o, path); !errors.Is(err, disk.ErrTarget) {
			t.Errorf("%q was removed: %v", path, err)
		}
	}
	for _, path := range []string{"up", "out", "link", "dangling", "a/b/file", "a/b", "a"} {
		must(t, remove(o, path))
	}
	r, err := o.Remover("")
	must(t, err)
	must(t, r.Remove("a-b"))
	must(t, r.Close())
	if got, err := list(t, o, "", true); err != nil || len(got) != 1 {
		t.Errorf("%q remain, %v", got, err)
	}
	if _, err := os.Stat(filepath.Dir(o.Path) + "/outside/file"); err != nil {
		t.Error(err)
	}
}

func TestRemoverOfADirectory(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.Write, "a/b/file", "file", "link -> a/b", "out -> /")
	r, err := o.Remover("link/")
	must(t, err)
	defer r.Close()
	must(t, r.Remove("file"))
	if err := r.Remove("../../file"); !errors.Is(err, disk.ErrOutside) {
		t.Errorf("a file above was removed: %v", err)
	}
	if _, err := os.Stat(o.Path + "/file"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"out", "out/tmp", "file", "absent"} {
		if _, err := o.Remover(path); err == nil {
			t.Errorf("%q was opened", path)
		}
	}
}

func TestAccessIsEnforced(t *testing.T) {
	parent := t.TempDir()
	readable := mustOpen(t, parent, share.Read, "file")
	writable := mustOpen(t, parent, share.Write)
	all := mustOpen(t, parent, share.ReadWrite)
	kept := *all
	kept.NoOverwrite = true
	for name, c := range map[string]struct {
		o           *share.Opened
		read, write bool
	}{
		"ro": {readable, true, false}, "wo": {writable, false, true}, "rw": {all, true, true},
	} {
		_, listErr := list(t, c.o, "", false)
		_, statErr := c.o.Stat("file", share.ListOptions{})
		removeErr := remove(c.o, "absent")
		for what, err := range map[string]error{"list": listErr, "stat": statErr} {
			if errors.Is(err, share.ErrDenied) == c.read {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if errors.Is(removeErr, share.ErrDenied) == c.write {
			t.Errorf("%s: remove: %v", name, removeErr)
		}
		if err := disk.MakeDir(c.o.FS(), name); errors.Is(err, unix.EROFS) == c.write {
			t.Errorf("%s: create: %v", name, err)
		}
	}
	if err := remove(&kept, "file"); !errors.Is(err, share.ErrDenied) {
		t.Errorf("nooverwrite: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	parent := t.TempDir()
	build(t, parent, "file")
	for _, path := range []string{parent + "/absent", parent + "/file"} {
		_, err := share.Open(share.Share{Name: "s", Path: path, Access: share.Read}, disk.OS)
		if !errors.Is(err, disk.ErrSource) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A daemon must not tell its peers where a share is.
func TestErrorsDoNotNameThePathOfAShare(t *testing.T) {
	o := mustOpen(t, t.TempDir(), share.ReadWrite, content...)
	must(t, os.Mkdir(o.Path+"/.file.dma-copy-part", 0o700))
	_, stat := o.Stat("absent", share.ListOptions{})
	_, source := disk.OpenSource(o.FS(), "absent")
	_, target := disk.OpenPartial(o.FS(), "file", disk.Wanted{Resume: true})
	_, tree := disk.OpenTree(o.FS(), "a-b", disk.TreeOptions{})
	_, list := list(t, o, "a-b/", true)
	made := disk.MakeDir(o.FS(), "a-b/c")
	for _, err := range []error{stat, source, target, tree, list, remove(o, "a"), made} {
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), o.Path) {
			t.Errorf("%v", err)
		}
	}
}

// remove removes one entry at a path below a share.
func remove(o *share.Opened, path string) error {
	r, err := o.Remover("")
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Remove(path)
}
