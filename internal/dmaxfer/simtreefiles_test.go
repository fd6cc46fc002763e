package dmaxfer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// simTree is where the two sides of a simulation have their directories.
const simTree = "/files/tree"

// fileTree is the content of a directory by path, relative to it.
type fileTree map[string]treeEntry

// treeEntry is a file, unless mode says that it is something else. An entry that is to be made has zero values for what
// does not matter, and no identity.
type treeEntry struct {
	mode     fs.FileMode // type bits
	text     string      // of a file, or of a symlink
	perm     fs.FileMode
	modified disk.Timestamp
	xattr    bool // it has the attribute of putTree

	inode, links uint64 // as found
}

// same reports whether two entries have the same type and content.
func (e treeEntry) same(other treeEntry) bool { return e.mode == other.mode && e.text == other.text }

// children returns the names in a directory, in order.
func (t fileTree) children(of string) (names []string) {
	for _, at := range slices.Sorted(maps.Keys(t)) {
		if dir, name := parent(at), path.Base(at); dir == of {
			names = append(names, name)
		}
	}
	return names
}

// parent returns the path of the directory that has an entry: empty for the root.
func parent(of string) string {
	if dir := path.Dir(of); dir != "." {
		return dir
	}
	return ""
}

// String is for the report of a failed seed.
func (t fileTree) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t)) {
		e := t[name]
		fmt.Fprintf(&text, "\n  %s(%s %o %d, %d bytes)", name, e.mode, e.perm, e.modified.Sec, len(e.text))
		if e.mode == fs.ModeSymlink {
			fmt.Fprintf(&text, " -> %s", e.text)
		}
	}
	return text.String()
}

// newTree has directories, some of them empty, files of sizes around that of a chunk, symlinks, and FIFOs.
func newTree(random *rand.Rand, chunk int64) fileTree {
	tree, directories := fileTree{}, []string{""}
	for i := range random.IntN(14) {
		in := pick(random, directories...)
		name := path.Join(in, fmt.Sprintf("%c%d", 'a'+random.IntN(3), i))
		e := treeEntry{modified: disk.Timestamp{Sec: 1e9 + random.Int64N(3), Nsec: uint32(random.IntN(3))}}
		switch random.IntN(12) {
		case 0, 1:
			e.mode, e.perm = fs.ModeDir, pick[fs.FileMode](random, 0o755, 0o700)
			directories = append(directories, name)
		case 2, 3:
			e.mode, e.text = fs.ModeSymlink, tree.linkText(random, in, path.Base(name))
		case 4:
			e.mode, e.perm = fs.ModeNamedPipe, 0o600
		default:
			e.text, e.perm = noise(random, treeFileSize(random, chunk), random.IntN(8) == 0),
				pick[fs.FileMode](random, 0o644, 0o600, 0o755, 0o444)
		}
		tree[name] = e
	}
	return tree
}

// linkText returns what a symlink of this name in a directory points to: something of the tree, its root, nothing, or
// itself.
func (t fileTree) linkText(random *rand.Rand, in, name string) string {
	if random.IntN(3) == 0 {
		return pick(random, "a", "../elsewhere", "/absolute", name, "./..")
	}
	to := pick(random, append(slices.Sorted(maps.Keys(t)), "")...)
	text, err := filepath.Rel("/"+in, "/"+to)
	if err != nil {
		panic(err)
	}
	return text
}

func treeFileSize(random *rand.Rand, chunk int64) int64 {
	return pick(random, 0, 1, 100, random.Int64N(chunk), chunk-1, chunk, chunk+1, 1+random.Int64N(5*chunk))
}

// older is what a target may have of a tree: some entries as they are, some with another content, with another time, or
// with another content and the same time, some of another type, and others.
func (t fileTree) older(random *rand.Rand, chunk int64) fileTree {
	old := fileTree{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if in := parent(name); in != "" && old[in].mode != fs.ModeDir {
			continue
		}
		e := t[name]
		isFile := e.mode.IsRegular()
		switch kind := random.IntN(12); {
		case e.mode == fs.ModeNamedPipe, kind < 2: // the target does not have it
		case kind < 5:
			old[name] = e
		case kind == 5 && e.mode == fs.ModeDir, kind == 6 && isFile: // a symlink is replaced, but not by a directory
			old[name] = treeEntry{mode: fs.ModeSymlink, text: "elsewhere"}
		case kind == 6 && e.mode == fs.ModeDir:
			old[name] = treeEntry{text: "in the way"}
		case kind == 7 && !isFile && e.mode != fs.ModeDir, kind == 5 && isFile:
			old[name] = treeEntry{mode: fs.ModeDir, perm: 0o755}
		case isFile && kind == 7:
			e.modified.Sec++
			old[name] = e
		case isFile && kind == 8:
			e.text = noise(random, int64(len(e.text)), false)
			old[name] = e
		case isFile:
			e.text = noise(random, treeFileSize(random, chunk), false)
			e.modified.Sec--
			old[name] = e
		case e.mode == fs.ModeSymlink && kind > 8:
			old[name] = treeEntry{text: "is to be a symlink"}
		case e.mode == fs.ModeSymlink:
			e.text += "/older"
			old[name] = e
		default:
			e.perm ^= 0o055
			old[name] = e
		}
	}
	old["extra"] = treeEntry{text: "is not in the source"}
	return old
}

// linkSome makes some files hard links of the first one, and returns their names with that of the first.
func (t fileTree) linkSome(random *rand.Rand) map[string]string {
	linked, first := map[string]string{}, ""
	for _, name := range slices.Sorted(maps.Keys(t)) {
		switch {
		case !t[name].mode.IsRegular():
		case first == "":
			first = name
		case random.IntN(4) == 0:
			t[name], linked[name] = t[first], first
		}
	}
	return linked
}

// putTree makes a directory with that content. Directories and files have an extended attribute.
func putTree(on *disktest.Memory, at string, tree fileTree, linked map[string]string) {
	makeDirectory(on, at)
	names := slices.Sorted(maps.Keys(tree))
	for _, name := range names {
		in, to := tree[name], path.Join(at, name)
		switch {
		case linked[name] != "":
			on.Link(path.Join(at, linked[name]), to)
		case in.mode == fs.ModeDir:
			makeDirectory(on, to)
		case in.mode == fs.ModeSymlink:
			on.Symlink(in.text, to, on.Self().UID)
		case in.mode != 0:
			on.Special(to, in.mode)
		default:
			putFile(on, to, in)
		}
	}
	for _, name := range names {
		setTimes(on, path.Join(at, name), tree[name])
	}
}

// putFile writes a file, and leaves whole pages of zeros out.
func putFile(on *disktest.Memory, at string, e treeEntry) {
	on.Put(at, "")
	dir := openDirectory(on, path.Dir(at))
	defer dir.Close()
	fillSparse(dir, path.Base(at), e.text)
	if e.perm == 0 {
		return
	}
	file, err := dir.Open(path.Base(at), true)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := errors.Join(file.SetMode(uint32(e.perm)), file.SetModified(e.modified)); err != nil {
		panic(err)
	}
}

func openDirectory(on *disktest.Memory, at string) disk.Dir {
	dir, err := on.OpenDir(at)
	if err != nil {
		panic(err)
	}
	return dir
}

func makeDirectory(on *disktest.Memory, at string) {
	dir := openDirectory(on, path.Dir(at))
	defer dir.Close()
	if err := dir.MakeDir(path.Base(at), 0o755); err != nil {
		panic(err)
	}
}

// setTimes gives a directory or a symlink its attributes, as far as they are set.
func setTimes(on *disktest.Memory, at string, e treeEntry) {
	if e.modified == (disk.Timestamp{}) || e.mode.IsRegular() {
		return
	}
	if e.mode == fs.ModeSymlink {
		in := openDirectory(on, path.Dir(at))
		defer in.Close()
		if err := in.SetLinkModified(path.Base(at), e.modified); err != nil {
			panic(err)
		}
	}
	if e.mode != fs.ModeDir {
		return
	}
	dir := openDirectory(on, at)
	defer dir.Close()
	attribute := disk.Xattr{Name: "user.kind", Value: []byte("test")}
	err := errors.Join(dir.SetXattr(attribute), dir.SetMode(uint32(e.perm)), dir.SetModified(e.modified))
	if err != nil {
		panic(err)
	}
}

// treeAt returns the content of a directory; nil if there is none.
func treeAt(t *testing.T, on disk.FS, at string) fileTree {
	t.Helper()
	dir, err := on.OpenDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	defer dir.Close()
	names, err := disk.Names(dir)
	must(t, err)
	tree := fileTree{}
	for _, name := range names {
		e := entryAt(t, dir, name)
		if e.mode == fs.ModeDir {
			for below, found := range treeAt(t, on, path.Join(at, name)) {
				tree[path.Join(name, below)] = found
			}
		}
		tree[name] = e
	}
	return tree
}

// entryAt returns an entry of a directory as it is.
func entryAt(t *testing.T, in disk.Dir, name string) treeEntry {
	t.Helper()
	info, err := in.Stat(name)
	must(t, err)
	e := treeEntry{
		mode: info.Mode.Type(), perm: info.Mode.Perm(), modified: info.Modified, inode: info.Inode, links: info.Links,
	}
	var attributes []disk.Xattr
	switch e.mode {
	case fs.ModeDir:
		dir, err := in.OpenBeneath(name)
		must(t, err)
		defer dir.Close()
		attributes, err = dir.Xattrs()
		must(t, err)
	case fs.ModeSymlink:
		link, err := in.ReadLink(name)
		must(t, err)
		e.text = link.Text
	case 0:
		file, err := in.Open(name, true)
		must(t, err)
		defer file.Close()
		text := make([]byte, info.Size)
		if len(text) > 0 {
			_, err = file.ReadAt(text, 0)
			must(t, err)
		}
		e.text = string(text)
		attributes, err = file.Xattrs()
		must(t, err)
	}
	e.xattr = len(attributes) == 1 && attributes[0].Name == "user.kind" && string(attributes[0].Value) == "test"
	return e
}
