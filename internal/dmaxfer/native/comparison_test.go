package native

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// newComparison returns a meeting of two sides that have the same directory with a symlink, whose time differs.
func newComparison(t *testing.T) *meeting {
	t.Helper()
	m := newFileMeeting(t, same, false)
	m.from.Symlink("f", "/src/l", 1000)
	m.to.Symlink("f", "/dst/t/l", 2000)
	return m
}

// In a comparison the time of a symlink does not count, whether the receiver would send it or not.
func TestComparisonOfASymlink(t *testing.T) {
	for _, links := range []tree.LinkMode{tree.LinksCopy, tree.LinksSkip} {
		m := newComparison(t)
		m.receiver.config.Links = links
		m.mustSucceed()
	}
}

// newComparedLinks returns a meeting of two sides that have the same files under several names. On the receiver the
// first name is below a symlink, which it would follow.
func newComparedLinks(t *testing.T) *meeting {
	t.Helper()
	from := disktest.NewMemory("/", "/src", "/src/a", "/src/b")
	to := disktest.NewMemory("/", "/dst", "/dst/t", "/dst/t/b")
	from.Put("/src/a/f", "content")
	from.Link("/src/a/f", "/src/b/f")
	from.Link("/src/a/f", "/src/c")
	to.Put("/dst/t/b/f", "content")
	to.Link("/dst/t/b/f", "/dst/t/c")
	to.Symlink("b", "/dst/t/a", 1000)
	m := newLinkMeeting(t, from, to)
	m.receiver.config.Links = tree.LinksFollow
	return m
}

// Names that lead to one file on both sides are the same, whether a symlink is followed to it or not.
func TestComparisonOfHardLinks(t *testing.T) {
	m := newComparedLinks(t)
	m.mustSucceed()
	if s := m.receiver.summary.Tree; s.Unchanged != 6 {
		t.Errorf("%+v", s)
	}
	m = newComparedLinks(t)
	m.to.Put("/dst/t/c", "content")
	m.run()
	if !errors.Is(m.receiver.err, wire.ErrBothHaveFile) {
		t.Errorf("with two files: %v", m.receiver.err)
	}
}

// A name of a file that could not be compared is not taken for the same.
func TestComparisonOfAHardLinkToAFileThatFails(t *testing.T) {
	m := newComparedLinks(t)
	m.onReceiver(func(_ int, op, name string) *disktest.Fault {
		if op == "open" && name == "f" {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	})
	setAttributes(t, m.to, "/dst/t/b/f", 0o600, 3000) // so that the content is compared
	m.run()
	mustBe(t, m.receiver.err, job.ErrSomeFailed)
	if s := m.receiver.summary.Tree; s.Failed != 3 || s.Unchanged != 3 {
		t.Errorf("%+v", s)
	}
}

// Whichever opening of the receiver's directory fails, the comparison fails with that.
func TestComparisonWithADirectoryThatCannotBeOpened(t *testing.T) {
	for fails, reached := 0, true; reached; fails++ {
		for _, errno := range []unix.Errno{unix.EIO, unix.ENOTDIR} {
			m := newComparison(t)
			opened := 0
			reached = false
			m.onReceiver(func(_ int, op, name string) *disktest.Fault {
				if op != "open" || name != "t" {
					return nil
				}
				if opened++; opened <= fails+1 || reached { // the first one is before the transfer
					return nil
				}
				reached = true
				return &disktest.Fault{Err: errno}
			})
			m.run()
			if _, is := errors.AsType[*job.Defect](m.receiver.err); is || reached == (m.receiver.err == nil) {
				t.Errorf("opening %d fails with %v: %v", fails+1, errno, m.receiver.err)
			}
		}
	}
}
