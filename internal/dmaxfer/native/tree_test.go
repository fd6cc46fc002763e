package native

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// newTreeSource returns a file system with a tree of every kind of entry in /src.
func newTreeSource(t *testing.T) *disktest.Memory {
	t.Helper()
	m := disktest.NewMemory("/", "/src", "/src/a", "/src/a/b", "/src/empty", "/src/z")
	m.Put("/src/a/b/deep", "deep")
	m.Put("/src/a/empty", "")
	m.Put("/src/a/large", roletest.Repeated("large", 3*4096+5))
	m.Put("/src/a/slot", roletest.Repeated("slot", 4096))
	m.Put("/src/small", "small")
	m.Put("/src/z/huge", roletest.Repeated("huge", 40*4096))
	m.Symlink("../small", "/src/a/link", 1000)
	m.Symlink("nowhere", "/src/dangling", 1000)
	m.Link("/src/small", "/src/z/same")
	for i, path := range []string{
		"/src/a/b/deep", "/src/a/large", "/src/a/b", "/src/a", "/src/empty", "/src/z", "/src",
	} {
		setAttributes(t, m, path, []uint32{0o640, 0o400, 0o500, 0o755, 0o700, 0o555, 0o750}[i], int64(1000+i))
	}
	return m
}

// A tree arrives with everything in it, in both directions, by every digest and with every durability.
func TestTreeArrives(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		for _, a := range wire.Digests() {
			for d := wire.DurabilityNone; d <= wire.DurabilityFull; d++ {
				m := newMeeting(t, newTreeSource(t), newTarget())
				m.dpuSends = dpuSends
				for _, p := range []*party{m.sender, m.receiver} {
					p.config.Digest, p.config.Durability, p.config.HardLinks = a, d, true
				}
				m.mustSucceed()
				m.mustHaveSame()
				s := m.receiver.summary.Tree
				if s.Files != 6 || s.Directories != 5 || s.Symlinks != 2 || s.HardLinks != 1 || s.Unchanged != 0 {
					t.Errorf("%+v", s)
				}
				if m.receiver.summary.Durability != d {
					t.Errorf("durability %s, want %s", m.receiver.summary.Durability, d)
				}
			}
		}
	}
}

// Without the option of both sides, hard links are files of their own.
func TestHardLinksAreCopiedAsFiles(t *testing.T) {
	for _, wanted := range []func(m *meeting){
		func(*meeting) {},
		func(m *meeting) { m.sender.config.HardLinks = true },
		func(m *meeting) { m.receiver.config.HardLinks = true },
	} {
		m := newMeeting(t, newTreeSource(t), newTarget())
		wanted(m)
		m.mustSucceed()
		if s := m.receiver.summary.Tree; s.Files != 7 || s.HardLinks != 0 {
			t.Errorf("%+v", s)
		}
		if text, _ := m.to.Get("/dst/t/z/same"); text != "small" {
			t.Errorf("the other name has %q", text)
		}
	}
}

// A repeated transfer changes nothing.
func TestRepeatedTreeIsUnchanged(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.mustSucceed()
	again := newMeeting(t, m.from, m.to)
	again.receiver.search.Overwrite = true
	again.mustSucceed()
	again.mustHaveSameContent()
	if s := again.receiver.summary.Tree; s.Unchanged != 14 || s.Files+s.Directories+s.Symlinks+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	if again.messages[wire.TypeChunks]+again.messages[wire.TypePack]+again.messages[wire.TypeEnd] != 0 {
		t.Errorf("content was sent: %v", again.messages)
	}
}

// mustHaveSameContent is mustHaveSame without the number of links.
func (m *meeting) mustHaveSameContent() {
	m.t.Helper()
	got, want := describeTree(m.t, m.to, "/dst/t"), describeTree(m.t, m.from, "/src")
	for _, names := range []map[string]string{got, want} {
		delete(names, "small")
		delete(names, "z/same")
	}
	mustBeSame(m.t, got, want)
}

// A tree without files needs no window. Its end may arrive before the receiver has opened one.
func TestTreeWithoutFiles(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		from := disktest.NewMemory("/", "/src", "/src/a", "/src/b")
		m := newMeeting(t, from, newTarget())
		m.dpuSends = dpuSends
		m.late = true
		m.mustSucceed()
		m.mustHaveSame()
	}
}

// Extended attributes of files of every kind and of directories arrive, those that grant privileges do not.
func TestExtendedAttributesArrive(t *testing.T) {
	from := newTreeSource(t)
	for _, path := range []string{"/src/small", "/src/a/large", "/src/a/empty", "/src/a", "/src"} {
		change(t, from, path, func(f attributed) error {
			return f.SetXattr(disk.Xattr{Name: "user.path", Value: []byte(path + roletest.Repeated("!", 5000))})
		})
	}
	for i, path := range []string{"/src/a/large", "/src/a", "/src"} {
		setAttributes(t, from, path, 0o700, int64(i))
	}
	for _, wanted := range []bool{false, true} {
		m := newMeeting(t, from, newTarget())
		m.sender.config.Xattrs, m.receiver.config.Xattrs = true, wanted
		m.receiver.config.Digest = digest.SHA256
		m.mustSucceed()
		if wanted {
			m.mustHaveSameContent()
		}
		if got := m.messages[wire.TypeMetadata]; (got > 0) != wanted {
			t.Errorf("%d messages of attributes, wanted by both sides: %t", got, wanted)
		}
	}
}

// However many files there are that come in chunks, few of them are open at once.
func TestFewFilesAreOpen(t *testing.T) {
	const (
		most  = 64 * 5 // files that come in chunks, and what each needs
		count = 4 * 64
	)
	from, to, open := disktest.NewMemory("/", "/src"), newTarget(), 0
	for i := range count {
		from.Put(fmt.Sprintf("/src/%03d", i), roletest.Repeated("content", 2*4096+i))
	}
	m := newMeeting(t, from, to)
	m.receiver.search.FS = disktest.NewFaulty(to, func(int, string, string) *disktest.Fault {
		open = max(open, to.Handles())
		return nil
	})
	m.mustSucceed()
	if s := m.receiver.summary.Tree; s.Files != count {
		t.Errorf("%+v", s)
	}
	if open > most {
		t.Errorf("%d files and directories were open", open)
	}
}

// A directory that all may write keeps its sticky bit, without which anyone could remove the files of others.
func TestStickyDirectory(t *testing.T) {
	from, to := disktest.NewMemory("/", "/src", "/src/shared"), newTarget()
	from.SetDirectory("/src/shared", fs.ModeSticky|0o777, 0)
	newMeeting(t, from, to).mustSucceed()
	made, err := to.Stat("/dst/t/shared")
	must(t, err)
	if made.Mode&fs.ModeSticky == 0 || made.Mode.Perm() != 0o777 {
		t.Errorf("mode %s", made.Mode)
	}
}
