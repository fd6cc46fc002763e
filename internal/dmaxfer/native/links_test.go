package native

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// newLinkedSource returns a source of a file of that size with two more names.
func newLinkedSource(size int) *disktest.Memory {
	m := disktest.NewMemory("/", "/src", "/src/z")
	m.Put("/src/file", roletest.Repeated("linked", size))
	m.Link("/src/file", "/src/link")
	m.Link("/src/file", "/src/z/link")
	return m
}

// newLinkMeeting returns a meeting that preserves hard links.
func newLinkMeeting(t *testing.T, from, to *disktest.Memory) *meeting {
	m := newMeeting(t, from, to)
	m.sender.config.HardLinks, m.receiver.config.HardLinks = true, true
	return m
}

// Hard links are made when the file that they are names of has been committed, however that was sent and flushed.
func TestHardLinksWaitForTheirFile(t *testing.T) {
	for _, size := range []int{0, 100, 30 * 4096} {
		for d := wire.DurabilityNone; d <= wire.DurabilityFull; d++ {
			m := newLinkMeeting(t, newLinkedSource(size), newTarget())
			m.sender.config.Durability = d
			faulty := m.onReceiver(faultless)
			m.mustSucceed()
			m.mustHaveSame()
			committed := "name file"
			if size > 4096 {
				committed = "rename file"
			}
			trace := faulty.Trace()
			mustFollow(t, trace, committed, "link link")
			if s := m.receiver.summary.Tree; s.Files != 1 || s.HardLinks != 2 {
				t.Errorf("%d bytes: %+v", size, s)
			}
		}
	}
}

// Hard links of a file that is there already are made at once.
func TestHardLinksOfAnUnchangedFile(t *testing.T) {
	to := disktest.NewMemory("/", "/dst", "/dst/t", "/dst/t/z")
	from := newLinkedSource(100)
	to.Put("/dst/t/file", roletest.Repeated("linked", 100))
	setAttributes(t, from, "/src/file", 0o600, 1000)
	setAttributes(t, to, "/dst/t/file", 0o600, 1000)
	m := newLinkMeeting(t, from, to)
	m.receiver.search.Overwrite = true
	m.mustSucceed()
	m.mustHaveSame()
	if s := m.receiver.summary.Tree; s.Files != 0 || s.HardLinks != 2 {
		t.Errorf("%+v", s)
	}
}

// Hard links fail with the file that they are names of. They are not made to what the receiver has in its place.
func TestHardLinksFailWithTheirFile(t *testing.T) {
	for name, c := range map[string]struct {
		size    int
		failing string
		exists  bool
	}{
		"small":              {100, "name file", false},
		"large":              {30 * 4096, "chmod .file.dma-copy-part", false},
		"small, replaced":    {100, "name file", true},
		"large, replaced":    {30 * 4096, "chmod .file.dma-copy-part", true},
		"not even a partial": {30 * 4096, "create .file.dma-copy-part", true},
	} {
		t.Run(name, func(t *testing.T) {
			to := newTarget()
			if c.exists {
				to = disktest.NewMemory("/", "/dst", "/dst/t")
				to.Put("/dst/t/file", "old")
			}
			m := newLinkMeeting(t, newLinkedSource(c.size), to)
			m.receiver.search.Overwrite = c.exists
			faulty := m.onReceiver(failing(c.failing))
			m.mustFailInPart("file", "link", "z/link")
			if !faulty.Fired() {
				t.Errorf("nothing failed: %q", faulty.Trace())
			}
			for _, path := range []string{"/dst/t/link", "/dst/t/z/link"} {
				if text, found := to.Get(path); found {
					t.Errorf("%s has %q", path, text)
				}
			}
		})
	}
}

// Hard links to a file that the sender cannot send fail, too.
func TestHardLinksFailWithTheirSource(t *testing.T) {
	for _, size := range []int{100, 30 * 4096} {
		m := newLinkMeeting(t, newLinkedSource(size), newTarget())
		m.sender.search.FS = disktest.NewFaulty(m.from, failing("read file"))
		m.mustFailInPart("file", "link", "z/link")
		for _, p := range []*party{m.sender, m.receiver} {
			if got := p.actions()["z/link"]; got != job.Failed.String() {
				t.Errorf("%d bytes: %s", size, got)
			}
		}
	}
}

// A hard link that is announced long after its file has failed fails, too.
func TestLateHardLinkFailsWithItsFile(t *testing.T) {
	from, to := newLinkedSource(100), disktest.NewMemory("/", "/dst", "/dst/t")
	for i := range 2 * protocol.MaxOpen {
		from.Put(fmt.Sprintf("/src/m%04d", i), "")
	}
	to.Put("/dst/t/file", "old")
	m := newLinkMeeting(t, from, to)
	m.receiver.search.Overwrite = true
	m.onReceiver(failing("name file"))
	m.mustFailInPart("file", "link", "z/link")
	if text, found := to.Get("/dst/t/z/link"); found {
		t.Errorf("the link has %q", text)
	}
}

// A file that has changed is replaced by a new one, of which its other names become hard links.
func TestHardLinksOfAChangedFile(t *testing.T) {
	for _, size := range []int{100, 30 * 4096} {
		m := newLinkMeeting(t, newLinkedSource(size), newTarget())
		m.mustSucceed()
		m.from.Write("/src/file", "changed", 0)
		again := newLinkMeeting(t, m.from, m.to)
		again.receiver.search.Overwrite = true
		again.mustSucceed()
		again.mustHaveSame()
	}
}

// A dry run foretells each hard link as the transfer makes it. After a file has been replaced, the target's other names
// of it are those of another file. With Checksum a file is decided after its hard links are announced.
func TestDryRunOfHardLinks(t *testing.T) {
	sets := map[string]func(to *disktest.Memory){
		"nothing": func(*disktest.Memory) {},
		"the same": func(to *disktest.Memory) {
			to.Put("/dst/t/file", roletest.Repeated("linked", 100))
			to.Link("/dst/t/file", "/dst/t/link")
		},
		"another size": func(to *disktest.Memory) {
			to.Put("/dst/t/file", "old")
			to.Link("/dst/t/file", "/dst/t/link")
		},
		"another content": func(to *disktest.Memory) {
			to.Put("/dst/t/file", roletest.Repeated("other", 100))
			to.Link("/dst/t/file", "/dst/t/link")
		},
		"two files": func(to *disktest.Memory) {
			to.Put("/dst/t/file", roletest.Repeated("linked", 100))
			to.Put("/dst/t/link", roletest.Repeated("linked", 100))
		},
		"a symlink": func(to *disktest.Memory) {
			to.Put("/dst/t/file", roletest.Repeated("linked", 100))
			to.Symlink("file", "/dst/t/link", 1000)
		},
	}
	for name, put := range sets {
		for _, checksum := range []bool{false, true} {
			for _, keeps := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, checksum %t, ignore existing %t", name, checksum, keeps), func(t *testing.T) {
					m := newLinkMeeting(t, newLinkedSource(100), disktest.NewMemory("/", "/dst", "/dst/t", "/dst/t/z"))
					put(m.to)
					m.receiver.search.Overwrite, m.receiver.search.IgnoreExisting = !keeps, keeps
					m.receiver.config.Checksum = checksum
					mustForetell(t, m)
				})
			}
		}
	}
}

// mustForetell runs a meeting dry, and then again, and expects both sides to be told the same of each entry.
func mustForetell(t *testing.T, m *meeting) {
	t.Helper()
	again := newLinkMeeting(t, m.from, m.to)
	again.receiver.search, again.receiver.config.Checksum = m.receiver.search, m.receiver.config.Checksum
	m.receiver.config.DryRun = true
	m.run()
	again.run()
	for side, foretold := range []map[string]string{m.sender.actions(), m.receiver.actions()} {
		done := []map[string]string{again.sender.actions(), again.receiver.actions()}[side]
		for path, is := range done {
			want := strings.Replace(is, job.Copied.String(), job.WouldCopy.String(), 1)
			want = strings.Replace(want, job.Updated.String(), job.WouldUpdate.String(), 1)
			if foretold[path] != want {
				t.Errorf("%q was foretold to be %s, and was %s", path, foretold[path], is)
			}
		}
	}
}
