package native

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
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
