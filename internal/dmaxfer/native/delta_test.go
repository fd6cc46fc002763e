package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
)

// The file of these tests has 30 chunks.
const deltaChunk, deltaSize = 4096, 30 * 4096

// newDelta returns a meeting that replaces an old file, alone or in a tree.
func newDelta(t *testing.T, content, old string, single bool) *meeting {
	t.Helper()
	from, to := disktest.NewMemory("/", "/src"), disktest.NewMemory("/", "/dst", "/dst/t")
	path := "/dst/t/f"
	if single {
		to, path = disktest.NewMemory("/", "/dst"), "/dst/t"
	}
	from.Put("/src/f", content)
	to.Put(path, old)
	setAttributes(t, from, "/src/f", 0o640, 1000)
	setAttributes(t, to, path, 0o640, 2000)
	m := newMeeting(t, from, to)
	if single {
		m.sender.search.Path = "/src/f"
	}
	m.receiver.search.Overwrite = true
	return m
}

// What the file that is replaced has is not sent again.
func TestOnlyChunksThatDifferAreSent(t *testing.T) {
	content := roletest.Repeated("content of the source ", deltaSize)
	edited := content[:5*deltaChunk] + "x" + content[5*deltaChunk+1:]
	for name, c := range map[string]struct {
		old    string
		reused int64
	}{
		"another time": {content, 0}, // only its time is set
		"one byte":     {edited, deltaSize - deltaChunk},
		"shorter":      {content[:10*deltaChunk], 10 * deltaChunk},
		"longer":       {content + "more", deltaSize},
		"all":          {roletest.Repeated("something else ", deltaSize), 0},
	} {
		for _, single := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, single %t", name, single), func(t *testing.T) {
				m := newDelta(t, content, c.old, single)
				m.mustSucceed()
				if got := m.target(); got != content {
					t.Errorf("the target has %d other bytes", len(got))
				}
				for side, p := range []*party{m.sender, m.receiver} {
					if p.summary.Resumed != c.reused {
						t.Errorf("side %d tells of %d bytes that were there, not %d", side, p.summary.Resumed, c.reused)
					}
				}
			})
		}
	}
}

// A copy that must not learn or leave anything of the target sends the whole file.
func TestWholeFileIsSent(t *testing.T) {
	content := roletest.Repeated("content", deltaSize)
	for name, set := range map[string]func(m *meeting){
		"write-only share": func(m *meeting) { m.receiver.config.HideContent = true },
		"no resume":        func(m *meeting) { m.receiver.config.NoResume = true },
	} {
		t.Run(name, func(t *testing.T) {
			m := newDelta(t, content, content[:deltaSize-1]+"x", false)
			set(m)
			m.mustSucceed()
			if s := m.sender.summary; s.Resumed != 0 || m.target() != content {
				t.Errorf("%d bytes were there", s.Resumed)
			}
		})
	}
}

// A file that is replaced and cannot be read or copied is sent from where that fails.
func TestFileThatIsReplacedCannotBeRead(t *testing.T) {
	content := roletest.Repeated("content", deltaSize)
	for _, op := range []string{"open", "copy"} {
		t.Run(op, func(t *testing.T) {
			m := newDelta(t, content, content[:20*deltaChunk], false)
			failed := false
			m.onReceiver(func(_ int, call, name string) *disktest.Fault {
				if call != op || op == "open" && name != "f" {
					return nil
				}
				failed = true
				return &disktest.Fault{Err: unix.EIO}
			})
			m.mustSucceed()
			if s := m.sender.summary; !failed || s.Resumed != 0 || m.target() != content {
				t.Errorf("%d bytes were there", s.Resumed)
			}
		})
	}
}

// An interrupted copy that had begun with the old file is resumed from what had been compared, and then has the rest of
// the old file.
func TestResumedWithTheOldFile(t *testing.T) {
	content := roletest.Repeated("content", deltaSize)
	old := content[:25*deltaChunk] + roletest.Repeated("x", 5*deltaChunk)
	m := newDelta(t, content, old, true)
	writes := 0
	m.onReceiver(func(_ int, op, _ string) *disktest.Fault {
		if op != "write" {
			return nil
		}
		if writes++; writes < 4 { // the journal is written, too
			return nil
		}
		return &disktest.Fault{Err: unix.EIO}
	})
	m.run()
	if m.receiver.err == nil || m.target() != old {
		t.Fatalf("not interrupted: %v", m.receiver.err)
	}
	again := newMeeting(t, m.from, m.to)
	again.sender.search.Path, again.receiver.search.Overwrite = "/src/f", true
	again.mustSucceed()
	if s := again.receiver.summary; s.Resumed < 25*deltaChunk || again.target() != content {
		t.Errorf("%d bytes were there", s.Resumed)
	}
}

// Attributes of a file with the same content are set without replacing it. Other names of it keep theirs.
func TestAttributesOfTheSameContent(t *testing.T) {
	for _, linked := range []bool{false, true} {
		m := newDelta(t, "content", "content", false)
		if linked {
			m.to.Link("/dst/t/f", "/dst/other")
		}
		before, err := m.to.Stat("/dst/t/f")
		must(t, err)
		m.mustSucceed()
		after, err := m.to.Stat("/dst/t/f")
		must(t, err)
		if before.SameFile(after.Identity) == linked || after.Modified.Sec != 1000 {
			t.Errorf("linked %t: before %+v, after %+v", linked, before, after)
		}
		if s := m.sender.summary.Tree; s.Updated == 1 == linked {
			t.Errorf("linked %t: %+v", linked, s)
		}
		if linked {
			other, err := m.to.Stat("/dst/other")
			must(t, err)
			if other.Modified.Sec != 2000 {
				t.Errorf("the other name has the time %v", other.Modified)
			}
		}
	}
}

// A file that another process writes while it is compared does not get the time of the source.
func TestAttributesOfAFileThatChanges(t *testing.T) {
	m := newDelta(t, "content", "content", false)
	compared := false
	m.onReceiver(func(_ int, op, name string) *disktest.Fault {
		if op == "read" && name == "f" && !compared {
			compared = true
			m.to.Write("/dst/t/f", "changed", 0)
		}
		return nil
	})
	m.mustSucceed()
	if got := m.target(); !compared || got != "content" {
		t.Errorf("the target has %q", got)
	}
}

// Whatever fails while attributes are set, the file then has them, or the copy says so.
func TestAttributesThatCannotBeSetInPlace(t *testing.T) {
	for _, op := range []string{"chmod", "utimes"} {
		m := newDelta(t, "content", "content", false)
		failed := false
		m.onReceiver(func(_ int, call, name string) *disktest.Fault {
			if call != op || name != "f" || failed {
				return nil
			}
			failed = true
			return &disktest.Fault{Err: unix.EPERM}
		})
		m.run()
		info, err := m.to.Stat("/dst/t/f")
		must(t, errors.Join(err, m.receiver.err))
		if info.Modified.Sec != 1000 || m.sender.summary.Tree.Files != 1 {
			t.Errorf("%s fails: the file has %v: %+v", op, info.Modified, m.sender.summary.Tree)
		}
	}
}

// sealed returns a text of 4 KiB that ends with its own CRC-32C, as pages of metadata do. The CRC of all such texts is
// the same.
func sealed(text string) string {
	page := roletest.Repeated(text, deltaChunk-4)
	sum := crc32.Checksum([]byte(page), crc32.MakeTable(crc32.Castagnoli))
	return page + string(binary.LittleEndian.AppendUint32(nil, sum))
}

// Contents with the same CRC-32C are told apart, in chunks and as a whole.
func TestContentWithTheSameCRC(t *testing.T) {
	for _, rest := range []string{"", "and more of one file", roletest.Repeated("a large file ", deltaSize)} {
		for _, single := range []bool{false, true} {
			content := rest + sealed("the new page ") + rest
			m := newDelta(t, content, rest+sealed("the old page ")+rest, single)
			m.sender.config.Digest, m.receiver.config.Digest = digest.CRC32C, digest.CRC32C
			m.mustSucceed()
			if m.target() != content {
				t.Errorf("single %t, %d bytes: the target is not the source", single, len(content))
			}
		}
	}
}

// In a write-only share a file with another mode is replaced: its content may be another client's.
func TestModeInAWriteOnlyShare(t *testing.T) {
	m := newDelta(t, "source", "secret", false)
	setAttributes(t, m.to, "/dst/t/f", 0o600, 1000)
	m.receiver.config.HideContent = true
	m.mustSucceed()
	if got := m.target(); got != "source" {
		t.Errorf("the target has %q", got)
	}
}

// A source that may change, and does while it is compared, is copied.
func TestSourceThatMayChangeIsReplaced(t *testing.T) {
	m := newDelta(t, roletest.Repeated("new ", deltaSize), roletest.Repeated("old ", deltaSize), true)
	m.sender.config.AllowChanging = true
	m.sender.search.FS = disktest.NewFaulty(m.from, func(n int, op, _ string) *disktest.Fault {
		if op == "read" && n%5 == 0 {
			m.from.Write("/src/f", fmt.Sprint(n), 0)
		}
		return nil
	})
	m.mustSucceed()
	if got := m.target(); len(got) != deltaSize || got[deltaSize/2:deltaSize/2+4] != "new " {
		t.Errorf("the target has %d bytes", len(got))
	}
}
