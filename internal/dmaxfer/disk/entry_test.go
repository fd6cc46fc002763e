package disk_test

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// treeOf makes a directory "tree" in a place and opens it for being overwritten.
func treeOf(t *testing.T, at testDir, keep disk.Preserve, fill func(at testDir)) *disk.Tree {
	t.Helper()
	must(t, mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes}).Close(true))
	if fill != nil {
		fill(inside(at, "tree"))
	}
	return mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Preserve: keep})
}

// inside returns a directory of a place.
func inside(at testDir, name string) testDir {
	return testDir{
		fs: at.fs, folder: at.path(name),
		put:  func(file, text string) { at.put(name+"/"+file, text) },
		get:  func(file string) (string, bool) { return at.get(name + "/" + file) },
		link: func(text, file string) { at.link(text, name+"/"+file) },
	}
}

// receivers create an entry with the content newText, or a symlink to "source", which has it.
var receivers = map[string]func(t *testing.T, d *disk.Directory, name string) error{
	"put": func(_ *testing.T, d *disk.Directory, name string) error {
		return d.Put(name, []byte(newText), metaOf(newText))
	},
	"partial": func(t *testing.T, d *disk.Directory, name string) error {
		p, err := d.Partial(name, wanted(len(newText)))
		if err != nil {
			return err
		}
		defer p.Discard()
		if err := receive(t, p, newText, wire.DurabilityNone); err != nil {
			return err
		}
		return p.Commit(wire.DurabilityNone)
	},
	"symlink": func(_ *testing.T, d *disk.Directory, name string) error {
		return d.Symlink(name, "source", metaOf(""))
	},
	"link": func(_ *testing.T, d *disk.Directory, name string) error { return d.Link(name, "source") },
}

// An existing file or symlink is replaced, and the file that a symlink leads to is not touched.
func TestExistingEntriesAreReplaced(t *testing.T) {
	existing := map[string]func(at testDir){
		"nothing":          func(testDir) {},
		"file":             func(at testDir) { at.put("entry", oldText) },
		"symlink":          func(at testDir) { at.link("precious", "entry") },
		"dangling symlink": func(at testDir) { at.link("absent", "entry") },
	}
	for what, prepare := range existing {
		for how, receive := range receivers {
			t.Run(how+" over "+what, func(t *testing.T) {
				everywhere(t, func(t *testing.T, at testDir) {
					in := inside(at, "tree")
					tree := treeOf(t, at, allTimes, func(at testDir) {
						at.put("precious", oldText)
						at.put("source", newText)
						prepare(at)
					})
					must(t, receive(t, tree.Root(), "entry"))
					must(t, receive(t, tree.Root(), "entry")) // again
					must(t, tree.Close(true))
					in.mustHold(t, "entry", "precious", "source")
					in.mustContain(t, "entry", newText)
					in.mustContain(t, "precious", oldText)
					in.mustContain(t, "source", newText)
				})
			})
		}
	}
}

// In a tree that is new, an existing entry is another process's.
func TestNewTreeReplacesNothing(t *testing.T) {
	for how, receive := range receivers {
		t.Run(how, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
				in := inside(at, "tree")
				in.put("source", newText)
				in.put("entry", oldText)
				mustFail(t, receive(t, tree.Root(), "entry"), disk.ErrExists, "entry already exists")
				must(t, tree.Close(true))
				in.mustContain(t, "entry", oldText)
				in.mustHold(t, "entry", "source")
			})
		})
	}
}

// A file, directory or pipe that cannot be replaced fails its entry.
func TestDirectoryIsNotReplaced(t *testing.T) {
	for how, receive := range receivers {
		t.Run(how, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				tree := treeOf(t, at, allTimes, func(at testDir) { at.put("source", newText) })
				mustEnter(t, tree.Root(), "entry").Release()
				mustFail(t, receive(t, tree.Root(), "entry"), disk.ErrTarget, "entry")
				must(t, tree.Close(true))
				inside(at, "tree").mustHold(t, "entry", "source")
			})
		})
	}
}

func TestPipeIsNotReplaced(t *testing.T) {
	for how, receive := range receivers {
		at := onDisk(t, t.TempDir())
		tree := treeOf(t, at, allTimes, func(in testDir) {
			in.put("source", newText)
			must(t, unix.Mkfifo(in.path("entry"), 0o600))
		})
		mustFail(t, receive(t, tree.Root(), "entry"), disk.ErrTarget, "cannot replace entry: it is not a regular file")
		must(t, tree.Close(true))
		if found, err := os.Lstat(at.path("tree/entry")); err != nil || found.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("%s: there is %v, %v", how, found, err)
		}
	}
}

// tryAll uses a name for every kind of entry and returns the errors.
func tryAll(d *disk.Directory, name string) (errs []error) {
	_, _, err := d.Enter(name, true)
	_, partial := d.Partial(name, wanted(1))
	return []error{err, partial, d.Put(name, nil, metaOf("")), d.Symlink(name, "x", metaOf("")), d.Link(name, "file")}
}

func TestNamesThatAreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{})
		root := tree.Root()
		must(t, root.Put("file", nil, metaOf("")))
		for _, name := range []string{"", ".", "..", "a/b", "../x", "/", "a\x00b"} {
			for _, err := range tryAll(root, name) {
				mustFail(t, err, disk.ErrTarget, "is not a name")
			}
			if err := root.Link("other", "file/"+name); !errors.Is(err, disk.ErrTarget) {
				t.Errorf("a link to %q: %v", name, err)
			}
		}
		for _, suffix := range []string{"part", "journal", "new"} {
			for _, err := range tryAll(root, ".file.dma-copy-"+suffix) {
				mustFail(t, err, disk.ErrTarget, "is reserved for unfinished files")
			}
		}
		for _, target := range []string{"../tree/file", "absent/file", "..", "/etc/passwd", "a//file", "./file"} {
			if err := root.Link("other", target); !errors.Is(err, disk.ErrTarget) {
				t.Errorf("a link to %q: %v", target, err)
			}
		}
		for _, err := range tryAll(root, strings.Repeat("n", 256)) {
			mustFail(t, err, disk.ErrTarget)
			mustBe(t, err, unix.ENAMETOOLONG)
		}
		must(t, tree.Close(true))
		inside(at, "tree").mustHold(t, "file")
	})
}

// A name that the file system does not accept fails its entry, and says so.
func TestNamesThatTheFileSystemRefuses(t *testing.T) {
	for _, refusal := range []error{unix.EINVAL, unix.EILSEQ, unix.ENAMETOOLONG} {
		_, m := inMemory()
		refusing := disktest.NewFaulty(m, func(_ int, _, name string) *disktest.Fault {
			if strings.Contains(name, "odd") {
				return &disktest.Fault{Err: refusal}
			}
			return nil
		})
		tree, err := disk.OpenTree(refusing, "/there/tree", disk.TreeOptions{})
		must(t, err)
		root := tree.Root()
		must(t, root.Put("file", nil, metaOf("")))
		for _, err := range tryAll(root, "odd") {
			mustFail(t, err, disk.ErrTarget, "odd", refusal.Error())
			mustBe(t, err, refusal)
		}
		err = root.Put("odd", nil, metaOf(""))
		mustFail(t, err, disk.ErrTarget, "cannot create odd: the file system refuses the name")
		must(t, root.Put("other", nil, metaOf("")))
		must(t, tree.Close(true))
		inside(memoryPlace(m), "tree").mustHold(t, "file", "other")
	}
}

// The longest names leave no room for a suffix.
func TestLongestNamesInATree(t *testing.T) {
	for how, receive := range receivers {
		t.Run(how, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				long := strings.Repeat("n", 255)
				tree := treeOf(t, at, allTimes, func(at testDir) { at.put(long, oldText) })
				root := tree.Root()
				must(t, root.Put("source", []byte(newText), metaOf(newText)))
				for _, name := range []string{long, strings.Repeat("m", 255)} {
					must(t, receive(t, root, name))
					inside(at, "tree").mustContain(t, name, newText)
				}
				must(t, tree.Close(true))
				if names := inside(at, "tree").names(t); len(names) != 3 {
					t.Errorf("there is %q", names)
				}
			})
		})
	}
}

// A temporary name that a killed transfer has left is used again; a directory of that name is not removed.
func TestTemporaryNameThatIsLeft(t *testing.T) {
	const temporary = ".entry.dma-copy-new"
	for how, receive := range receivers {
		if how == "partial" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				for _, leave := range []func(in testDir){
					func(in testDir) { in.put(temporary, oldText) },
					func(in testDir) { in.link("precious", temporary) },
				} {
					tree := treeOf(t, at, allTimes, func(in testDir) {
						in.put("source", newText)
						in.put("precious", oldText)
						in.put("entry", oldText)
						leave(in)
					})
					must(t, receive(t, tree.Root(), "entry"))
					must(t, tree.Close(true))
					in := inside(at, "tree")
					in.mustHold(t, "entry", "precious", "source")
					in.mustContain(t, "entry", newText)
					in.mustContain(t, "precious", oldText)
					must(t, removeTree(at))
				}
			})
		})
	}
}

// removeTree removes the files of "tree" and the directory.
func removeTree(at testDir) error {
	dir, err := at.fs.OpenDir(at.path("tree"))
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := disk.Names(dir)
	for _, name := range names {
		err = errors.Join(err, dir.Remove(name))
	}
	parent, openErr := at.fs.OpenDir(at.folder)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer parent.Close()
	return errors.Join(err, parent.RemoveDir("tree"))
}

func TestForeignTemporaryNamesAreRefused(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/tree")
	tree := mustOpenTree(t, memoryPlace(m), "tree", disk.TreeOptions{Overwrite: true})
	dir, err := m.OpenDir("/there/tree")
	must(t, err)
	must(t, dir.MakeDir(".a.dma-copy-new", 0o700))
	must(t, dir.Close())
	m.Symlink("x", "/there/tree/.b.dma-copy-new", 7)
	for name, reason := range map[string]string{
		"a": "a directory has the name", "b": "another user's file has the name",
	} {
		mustFail(t, tree.Root().Symlink(name, "x", metaOf("")), disk.ErrTarget, reason)
	}
	must(t, tree.Close(true))
	inside(memoryPlace(m), "tree").mustHold(t, ".a.dma-copy-new", ".b.dma-copy-new")
}

func TestFilesOfATreeAreOpened(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		tree := treeOf(t, at, allTimes, func(in testDir) { in.link("file", "link") })
		root := tree.Root()
		must(t, root.Put("file", []byte(oldText), metaOf(oldText)))
		_, err := root.Open("link")
		mustFail(t, err, disk.ErrTarget)
		_, err = root.Open("absent")
		mustBe(t, err, fs.ErrNotExist)
		file, err := root.Open("file")
		must(t, err)
		mustRead(t, file, oldText, 0)
		must(t, file.Close())
		must(t, tree.Close(true))
	})
}

// A name that exists in a directory which this transfer has created is that of another entry on a file system that
// ignores case, or another process's.
func TestNamesThatCollideInANewDirectory(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		tree := treeOf(t, at, allTimes, func(testDir) {})
		dir := mustEnter(t, tree.Root(), "dir")
		must(t, dir.Put("file", []byte(oldText), metaOf(oldText)))
		mustEnter(t, dir, "inner").Release()
		const collision = "takes it for another name of the source"
		mustFail(t, dir.Put("file", nil, metaOf("")), disk.ErrExists, collision)
		mustFail(t, dir.Symlink("file", "x", metaOf("")), disk.ErrExists, collision)
		must(t, dir.Put("other", nil, metaOf("")))
		mustFail(t, dir.Link("file", "dir/other"), disk.ErrExists, collision)
		_, err := dir.Partial("file", wanted(len(newText)))
		mustFail(t, err, disk.ErrExists)
		_, _, err = dir.Enter("inner", true)
		mustFail(t, err, disk.ErrExists, collision)
		dir.Release()
		must(t, tree.Close(true))
		at.mustContain(t, "tree/dir/file", oldText)
	})
}

// Without the source's attributes a new file gets the usual mode, and an existing one keeps its own.
func TestModesInATree(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		umask := fs.FileMode(at.fs.Self().Umask)
		mustHaveModes(t, at, disk.Preserve{}, map[string]fs.FileMode{
			"old": 0o751, "new": 0o644 &^ umask, "dir": fs.ModeDir | 0o751, "fresh": fs.ModeDir | 0o777&^umask,
		})
	})
	everywhere(t, func(t *testing.T, at testDir) {
		mustHaveModes(t, at, disk.Preserve{Mode: true}, map[string]fs.FileMode{
			"old": 0o767, "new": 0o767,
			"dir": fs.ModeDir | fs.ModeSticky | 0o767, "fresh": fs.ModeDir | fs.ModeSticky | 0o767,
		})
	})
}

// mustHaveModes receives an old and a new file and directory, with set-id bits, and compares the modes.
func mustHaveModes(t *testing.T, at testDir, keep disk.Preserve, want map[string]fs.FileMode) {
	t.Helper()
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
	receiveModes(t, tree.Root(), 0o6751, "old", "dir")
	must(t, tree.Close(true))
	tree = mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Preserve: keep})
	receiveModes(t, tree.Root(), 0o7767, "old", "dir")
	receiveModes(t, tree.Root(), 0o7767, "new", "fresh")
	must(t, tree.Close(true))
	for name, mode := range want {
		if found, err := at.fs.Stat(at.path("tree/" + name)); err != nil || found.Mode != mode {
			t.Errorf("with %+v %s has mode %v, %v", keep, name, found.Mode, err)
		}
	}
}

func receiveModes(t *testing.T, root *disk.Directory, mode uint32, file, dir string) {
	t.Helper()
	must(t, root.Put(file, []byte("x"), disk.Metadata{Mode: mode}))
	entered := mustEnter(t, root, dir)
	must(t, entered.Leave(disk.Metadata{Mode: mode}))
	entered.Release()
}

// A directory inherits its group and the set-group-ID bit, and keeps them.
func TestSetGroupIDIsInherited(t *testing.T) {
	at := onDisk(t, t.TempDir())
	must(t, os.Chmod(at.folder, 0o2700|fs.ModeSetgid))
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
	must(t, tree.Root().Leave(disk.Metadata{Mode: 0o755}))
	must(t, tree.Close(true))
	if found, err := os.Stat(at.path("tree")); err != nil || found.Mode() != fs.ModeDir|fs.ModeSetgid|0o755 {
		t.Errorf("there is %v, %v", found.Mode(), err)
	}
}

// With a default ACL the system takes the mode of new files from there.
func TestDefaultACL(t *testing.T) {
	at := onDisk(t, t.TempDir())
	// The version, then tag, permissions and id of each entry: rwx for the owner, nothing for others.
	acl := []byte{2, 0, 0, 0}
	for _, tag := range []byte{1, 4, 0x20} {
		acl = append(acl, tag, 0, map[bool]byte{true: 7}[tag == 1], 0, 255, 255, 255, 255)
	}
	if err := unix.Setxattr(at.folder, "system.posix_acl_default", acl, 0); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("the file system has no ACLs")
	} else {
		must(t, err)
	}
	tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
	must(t, tree.Root().Put("file", nil, disk.Metadata{Mode: 0o644}))
	must(t, tree.Close(true))
	if found, err := os.Stat(at.path("tree/file")); err != nil || found.Mode() != 0o644 {
		t.Errorf("there is %v, %v", found.Mode(), err)
	}
}

// An existing directory that its owner may not change is made writable while it is filled.
func TestReadOnlyDirectoryIsFilled(t *testing.T) {
	m := disktest.NewMemory("/there", "/there/tree")
	m.SetDirectory("/there/tree", fs.ModeSticky|0o555, m.Self().UID)
	tree := mustOpenTree(t, memoryPlace(m), "tree", disk.TreeOptions{Overwrite: true})
	if found, err := m.Stat("/there/tree"); err != nil || found.Mode != fs.ModeDir|fs.ModeSticky|0o755 {
		t.Errorf("while it is filled its mode is %v, %v", found.Mode, err)
	}
	must(t, tree.Root().Leave(metaOf("")))
	must(t, tree.Close(true))
	if found, err := m.Stat("/there/tree"); err != nil || found.Mode != fs.ModeDir|fs.ModeSticky|0o555 {
		t.Errorf("afterwards its mode is %v, %v", found.Mode, err)
	}
}

// Owners are set only on request, and only by root.
func TestOwners(t *testing.T) {
	meta := disk.Metadata{UID: 7, GID: 8}
	for _, self := range []uint32{0, 1000} {
		m := disktest.NewMemory("/there")
		m.SetSelf(disk.Self{UID: self})
		tree := mustOpenTree(t, memoryPlace(m), "tree", disk.TreeOptions{Preserve: disk.Preserve{Owner: true}})
		dir := mustEnter(t, tree.Root(), "dir")
		results := []error{
			dir.Put("file", nil, meta), dir.Symlink("link", "x", meta), dir.Leave(meta),
		}
		for _, err := range results {
			if self == 0 {
				must(t, err)
			} else {
				mustFail(t, err, disk.ErrTarget, "cannot preserve its owner on dir")
			}
		}
		names := inside(memoryPlace(m), "tree/dir").names(t)
		if wanted := map[uint32][]string{0: {"file", "link"}}[self]; !slices.Equal(names, wanted) {
			t.Errorf("as user %d there is %q", self, names)
		}
		if info, err := dir.Stat("file"); self == 0 && (err != nil || info.UID != 7 || info.GID != 8) {
			t.Errorf("the file is %+v, %v", info, err)
		}
		dir.Release()
		must(t, tree.Close(true))
	}
}

// xattrs returns what Metadata has of extended attributes.
func xattrs(attributes ...disk.Xattr) iter.Seq[disk.Xattr] { return slices.Values(attributes) }

// mustHaveXattr fails the test unless a directory has this extended attribute and no other.
func mustHaveXattr(t *testing.T, m *disktest.Memory, path, name, value string) {
	t.Helper()
	dir, err := m.OpenDir(path)
	must(t, err)
	found, err := dir.Xattrs()
	must(t, errors.Join(err, dir.Close()))
	if len(found) != 1 || found[0].Name != name || string(found[0].Value) != value {
		t.Errorf("%s has %q", path, found)
	}
}

// A directory has its extended attributes when they are set, and keeps them when it is left. They are set only if the
// transfer preserves them.
func TestExtendedAttributesOfADirectory(t *testing.T) {
	for _, preserved := range []bool{true, false} {
		m := disktest.NewMemory("/there")
		tree := mustOpenTree(t, memoryPlace(m), "tree", disk.TreeOptions{Preserve: disk.Preserve{Xattrs: preserved}})
		dir := mustEnter(t, tree.Root(), "dir")
		must(t, dir.SetXattrs(nil))
		must(t, dir.SetXattrs(xattrs(disk.Xattr{Name: "user.x", Value: []byte("y")})))
		must(t, dir.Leave(disk.Metadata{Mode: 0o500}))
		dir.Release()
		must(t, tree.Close(true))
		if preserved {
			mustHaveXattr(t, m, "/there/tree/dir", "user.x", "y")
			continue
		}
		found, err := m.OpenDir("/there/tree/dir")
		must(t, err)
		if attributes, err := found.Xattrs(); len(attributes) != 0 || err != nil {
			t.Errorf("the directory has %q, error %v", attributes, err)
		}
		must(t, found.Close())
	}
}

func TestExtendedAttributesInATree(t *testing.T) {
	m := disktest.NewMemory("/there")
	tree := mustOpenTree(t, memoryPlace(m), "tree", disk.TreeOptions{Preserve: disk.Preserve{Mode: true, Xattrs: true}})
	root := tree.Root()
	meta := disk.Metadata{Mode: 0o444, Xattrs: xattrs(disk.Xattr{Name: "user.x", Value: []byte("y")})}
	must(t, root.Put("file", nil, meta))
	file, err := root.Open("file")
	must(t, err)
	found, err := file.Xattrs()
	must(t, err)
	if mode := mustInfo(t, file).Mode; len(found) != 1 || string(found[0].Value) != "y" || mode != 0o444 {
		t.Errorf("there is %q, mode %v", found, mode)
	}
	must(t, file.Close())
	must(t, root.SetXattrs(meta.Xattrs))
	mustHaveXattr(t, m, "/there/tree", "user.x", "y")
	for _, name := range []string{"security.capability", "trusted.x", "system.posix_acl_access"} {
		meta.Xattrs = xattrs(disk.Xattr{Name: name})
		mustFail(t, root.Put("other", nil, meta), disk.ErrTarget, "it is not in the user namespace")
		mustFail(t, root.SetXattrs(meta.Xattrs), disk.ErrTarget, "it is not in the user namespace")
	}
	err = root.SetXattrs(xattrs(disk.Xattr{Name: strings.Repeat("x", 1<<18)}))
	mustFail(t, err, disk.ErrTarget, "it is not in the user namespace")
	if length := len(err.Error()); length > 1000 {
		t.Errorf("an error of %d bytes", length)
	}
	must(t, tree.Close(true))
}

// Where entries may be replaced, a directory loses the attributes that the source does not have, as far as such
// attributes are copied.
func TestOtherXattrsOfADirectoryAreRemoved(t *testing.T) {
	user := func(name string) disk.Xattr { return disk.Xattr{Name: "user." + name, Value: []byte("v")} }
	for _, overwrite := range []bool{false, true} {
		for _, source := range []iter.Seq[disk.Xattr]{nil, xattrs(user("kept"))} {
			everywhere(t, func(t *testing.T, at testDir) {
				o := disk.TreeOptions{Overwrite: overwrite, Preserve: disk.Preserve{Xattrs: true}}
				tree := mustOpenTree(t, at, "tree", o)
				mustEnter(t, tree.Root(), "dir").Release()
				must(t, tree.Close(true))
				tree = mustOpenTree(t, at, "tree", o)
				dir, err := at.fs.OpenDir(at.path("tree/dir"))
				must(t, err)
				defer dir.Close()
				want := []string{"user.kept", "user.other"}
				must(t, dir.SetXattr(user("kept")))
				must(t, dir.SetXattr(user("other")))
				trusted := 0
				if dir.SetXattr(disk.Xattr{Name: "trusted.x"}) == nil { // which only root may
					trusted = 1
				}
				if overwrite && source == nil {
					want = nil
				} else if overwrite {
					want = []string{"user.kept"}
				}
				again := mustEnter(t, tree.Root(), "dir")
				must(t, again.SetXattrs(source))
				again.Release()
				must(t, tree.Close(true))
				found, err := dir.Xattrs()
				must(t, err)
				var names []string
				for _, each := range found {
					if each.Name != "trusted.x" {
						names = append(names, each.Name)
					}
				}
				if !slices.Equal(names, want) || len(found) != len(names)+trusted {
					t.Errorf("overwrite %t: there is %q, want %q", overwrite, found, want)
				}
			})
		}
	}
}

// Without openat2(2), and without the permission to name a file by its descriptor, the result is the same.
func TestOldKernel(t *testing.T) {
	disk.OldKernel(t)
	t.Run("beneath", TestOnlyDirectoriesBelowAreOpened)
	t.Run("unnamed", TestFilesWithoutNamesGetThemElsewhere)
	t.Run("tree", TestTreeIsReceived)
}

// Without openat2(2) a directory is found as well behind one that the user may search but not read.
func TestDirectoryBehindAnUnreadableOne(t *testing.T) {
	disk.OldKernel(t)
	top := shared(t)
	must(t, os.MkdirAll(filepath.Join(top, "a/b"), 0o755))
	must(t, os.Chmod(top, 0o755))
	must(t, os.Chmod(filepath.Join(top, "a"), 0o711))
	look := func() {
		dir, err := disk.OS.OpenDir(top)
		must(t, err)
		defer dir.Close()
		b, err := dir.OpenBeneath("a/b")
		must(t, err)
		must(t, b.Close())
	}
	if os.Geteuid() != 0 {
		must(t, os.Chmod(filepath.Join(top, "a"), 0o311)) // its owner
		look()
		return
	}
	asNobody(t, look)
}

// A file is named by its descriptor, or by /proc where that is refused, also by a user without privileges.
func TestUnprivilegedUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // every other test runs as such a user
	}
	at := onDisk(t, shared(t))
	must(t, os.Chown(at.folder, 65534, 65534))
	asNobody(t, func() {
		tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Preserve: allTimes})
		must(t, tree.Root().Put("file", []byte(newText), metaOf(newText)))
		must(t, tree.Close(true))
	})
	at.mustContain(t, "tree/file", newText)
}

// asNobody calls a function with the effective user of nobody, which takes the capabilities away, too.
func asNobody(t *testing.T, call func()) {
	t.Helper()
	must(t, syscall.Setegid(65534))
	must(t, syscall.Seteuid(65534))
	defer func() {
		must(t, syscall.Seteuid(0))
		must(t, syscall.Setegid(0))
	}()
	call()
}
