package native

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Chunks and packs that arrive wrong are sent again, and both sides count them.
func TestCorruptedUnitsAreRetransmitted(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		for _, a := range []digest.Algorithm{digest.CRC32C, digest.XXH3, digest.SHA256} {
			m := newMeeting(t, newTreeSource(t), newTarget())
			m.dpuSends, m.corrupted = dpuSends, protocol.MaxAttempt
			m.sender.config.Digest = a
			m.mustSucceed()
			m.mustHaveSameContent()
			sent, received := m.sender.summary.Retries, m.receiver.summary.Retries
			if sent != protocol.MaxAttempt || received != sent {
				t.Errorf("%s: the sender retransmitted %d units, the receiver rejected %d", a, sent, received)
			}
		}
	}
}

// A unit that is wrong every time ends the transfer, and no file of it gets its name.
func TestUnitsThatAreAlwaysCorrupted(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		m := newMeeting(t, newSmallSource(3), newTarget())
		m.dpuSends, m.corrupted = dpuSends, 1000
		m.sender.config.Depth = 1 // so that there is one lane, and one engine
		m.run()
		mustBe(t, m.receiver.err, job.ErrDigest)
		if m.sender.err == nil {
			t.Error("the sender did not fail")
		}
		if left := len(describeTree(t, m.to, "/dst/t")); left != 1 {
			t.Errorf("%d entries are left", left)
		}
	}
}

// More entries than a message or the protocol's window of entries holds arrive, and so does a deep tree.
func TestManyEntriesAndDeepTrees(t *testing.T) {
	path := "/src"
	directories := []string{"/", "/src"}
	for range 300 {
		path += "/d"
		directories = append(directories, path)
	}
	from := disktest.NewMemory(directories...)
	for i := range 2*protocol.MaxOpen + 7 {
		from.Put(fmt.Sprintf("/src/f%04d", i), fmt.Sprint(i))
	}
	from.Put(path+"/deep", "deep")
	m := newMeeting(t, from, newTarget())
	m.mustSucceed()
	m.mustHaveSame()
}

// Limits of either side end the transfer on both.
func TestLimits(t *testing.T) {
	for name, limit := range map[string]func(c *role.Config){
		"bytes":   func(c *role.Config) { c.MaxBytes = 40 * 4096 },
		"entries": func(c *role.Config) { c.MaxEntries = 5 },
	} {
		for _, sender := range []bool{false, true} {
			m := newMeeting(t, newTreeSource(t), newTarget())
			limited, other := m.sender, m.receiver
			if !sender {
				limited, other = m.receiver, m.sender
			}
			limit(&limited.config)
			m.run()
			mustBe(t, limited.err, job.ErrLimit)
			if !abortedWith(other.err, wire.AbortLimit) {
				t.Errorf("%s, sender: %t: the other side ended with %v", name, sender, other.err)
			}
		}
	}
}

// A file that one side cannot read for its digest fails alone.
func TestFileThatCannotBeCompared(t *testing.T) {
	for _, onSender := range []bool{false, true} {
		m := newMeeting(t, newTreeSource(t), newTarget())
		m.mustSucceed()
		again := newMeeting(t, m.from, m.to)
		again.receiver.search.Overwrite, again.sender.config.Checksum = true, true
		if onSender {
			again.sender.search.FS = disktest.NewFaulty(m.from, failing("read huge"))
		} else {
			again.onReceiver(failing("read huge"))
		}
		again.mustFailInPart("z/huge")
		if s := again.receiver.summary.Tree; s.Unchanged != 13 {
			t.Errorf("%+v", s)
		}
	}
}

// A link that does not fit into a message fails alone.
func TestLinkThatDoesNotFit(t *testing.T) {
	from := newTreeSource(t)
	from.Symlink(strings.Repeat("x", 4095), "/src/long", 1000)
	m := newMeeting(t, from, newTarget())
	m.run()
	mustBe(t, m.sender.err, job.ErrSomeFailed)
	mustBe(t, m.receiver.err, job.ErrSomeFailed)
	m.mustAgree()
	mustBe(t, m.sender.summary.Tree.Failures[0].Err, disk.ErrSource)
}

// An interrupted transfer leaves no part of a file under a final name. The next one skips what has been committed.
func TestInterruptedTreeIsContinued(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		for _, interrupted := range []string{"sender", "receiver"} {
			m := newMeeting(t, newTreeSource(t), newTarget())
			m.dpuSends = dpuSends
			p, other := m.sender, m.receiver
			if interrupted == "receiver" {
				p, other = m.receiver, m.sender
			}
			p.interruptAt = 6
			m.run()
			mustBe(t, p.err, errInterrupted)
			if other.err == nil {
				t.Errorf("only the %s was interrupted", interrupted)
			}
			m.mustHaveNoParts()
			again := newMeeting(t, m.from, m.to)
			again.dpuSends = dpuSends
			again.mustSucceed()
			again.mustHaveSameContent()
			if s := again.receiver.summary.Tree; s.Unchanged == 0 {
				t.Errorf("%s: %+v", interrupted, s)
			}
		}
	}
}

// mustHaveNoParts fails the test unless every file of the target with a final name has the content of the source.
func (m *meeting) mustHaveNoParts() {
	m.t.Helper()
	for path := range describeTree(m.t, m.to, "/dst/t") {
		got, isFile := m.to.Get("/dst/t/" + path)
		if want, _ := m.from.Get("/src/" + path); isFile && got != want && !strings.Contains(path, ".dma-copy-") {
			m.t.Errorf("%s has %d bytes, which are not those of the source", path, len(got))
		}
	}
}

// A full disk fails the files that do not fit, and leaves the others.
func TestFullTarget(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.to.Limit(30 * 4096)
	for _, p := range []*party{m.sender, m.receiver} {
		p.config.Digest = digest.SHA256 // one lane: what fits comes before the file that takes all space
	}
	m.run()
	mustBe(t, m.receiver.err, job.ErrSomeFailed)
	mustBe(t, m.sender.err, job.ErrSomeFailed)
	m.mustAgree()
	mustBe(t, m.receiver.summary.Tree.Failures[0].Err, unix.ENOSPC)
	m.mustHaveNoParts()
	if text, _ := m.to.Get("/dst/t/small"); text != "small" {
		t.Errorf("a file that fits has %q", text)
	}
}
