package native

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A file that is there already, but was not flushed when it was written, is made as durable as the transfer promises.
func TestUnchangedFileIsFlushed(t *testing.T) {
	from, to := disktest.NewMemory("/"), newTarget()
	from.Put("/src", "content")
	to.Record()
	first := newMeeting(t, from, to)
	first.config(func(c *role.Config) { c.Durability = wire.DurabilityNone })
	first.mustSucceed()
	if !lost(to) {
		t.Fatal("the file was flushed although the transfer did not promise it")
	}
	again := newMeeting(t, from, to)
	again.config(func(c *role.Config) { c.Durability = wire.DurabilityFull })
	again.receiver.search.Overwrite = true
	again.mustSucceed()
	if !again.receiver.summary.UpToDate || again.receiver.summary.Durability != wire.DurabilityFull {
		t.Errorf("summary: %+v", again.receiver.summary)
	}
	if lost(to) {
		t.Error("the file does not survive a loss of power")
	}
}

// A transfer that only compares does not promise that what is there is durable.
func TestComparedFileIsNotFlushed(t *testing.T) {
	from, to := disktest.NewMemory("/"), newTarget()
	from.Put("/src", "content")
	to.Put("/dst/t", "content")
	m := newMeeting(t, from, to)
	m.config(func(c *role.Config) { c.Durability = wire.DurabilityFull })
	m.mustSucceed()
	if s := m.sender.summary; !s.UpToDate || s.Durability != wire.DurabilityNone {
		t.Errorf("summary: %+v", s)
	}
}

// noWindow is the memory of a side that finds out late that it cannot open the window.
type noWindow struct{ *sharedMemory }

var errNoWindow = errors.New("no memory for the window")

func (noWindow) Open(context.Context, window.Layout, protocol.Window) (*window.Window, error) {
	time.Sleep(time.Second)
	return nil, errNoWindow
}

// A receiver that has the file already tells the sender so only when it has opened the window. If it cannot, both sides
// fail.
func TestUnchangedFileWithoutWindow(t *testing.T) {
	from, to := disktest.NewMemory("/"), newTarget()
	from.Put("/src", "content")
	newMeeting(t, from, to).mustSucceed()
	m, shared := newMeeting(t, from, to), &sharedMemory{}
	m.receiver.search.Overwrite = true
	m.memory = func(side wire.Side) window.Memory {
		if side == wire.Host {
			return shared
		}
		return noWindow{shared}
	}
	m.run()
	if !errors.Is(m.receiver.err, errNoWindow) {
		t.Errorf("receiver: %v", m.receiver.err)
	}
	aborted, is := errors.AsType[*protocol.PeerAborted](m.sender.err)
	if !is || aborted.Code != wire.AbortFailure {
		t.Errorf("sender: %v", m.sender.err)
	}
}

// config changes the configuration of both sides.
func (m *meeting) config(change func(c *role.Config)) {
	change(&m.sender.config)
	change(&m.receiver.config)
}

// lost reports whether the target can be gone, or differ, when the power fails after the last operation.
func lost(m *disktest.Memory) bool { return isLost(m, "/dst/t") }

func isLost(m *disktest.Memory, path string) bool {
	last := m.Steps() - 1
	for crash := range m.Crashes() {
		if text, found := crash.FS.Get(path); crash.Step == last && (!found || text != "content") {
			return true
		}
	}
	return false
}

// The files of a tree are made durable as well, where one call does not flush everything.
func TestUnchangedFileOfATreeIsFlushed(t *testing.T) {
	for _, lacking := range []disktest.Lacking{{}, {SyncFS: true}} {
		from, to := disktest.NewMemory("/", "/src"), newTarget()
		from.Put("/src/file", "content")
		to.Without(lacking)
		to.Record()
		first := newMeeting(t, from, to)
		first.config(func(c *role.Config) { c.Durability = wire.DurabilityNone })
		first.mustSucceed()
		if !isLost(to, "/dst/t/file") {
			t.Fatal("the file was flushed although the transfer did not promise it")
		}
		again := newMeeting(t, from, to)
		again.config(func(c *role.Config) { c.Durability = wire.DurabilityFull })
		again.receiver.search.Overwrite = true
		again.mustSucceed()
		if s := again.receiver.summary.Tree; s.Unchanged != 2 {
			t.Errorf("%+v", s)
		}
		if isLost(to, "/dst/t/file") {
			t.Errorf("with %+v the file does not survive a loss of power", lacking)
		}
	}
}

// A receiver that was killed after the final rename has left its journal, on either side.
func TestLeftoversOfAnUnchangedFileAreRemoved(t *testing.T) {
	const journal = ".t.dma-copy-journal"
	for _, overwrite := range []bool{false, true} {
		from, to := disktest.NewMemory("/", "/src"), newTarget()
		from.Put("/src/t", "content")
		from.Put("/src/"+journal, "journal")
		m := newMeeting(t, from, to)
		m.sender.search.Path = "/src/t"
		m.mustSucceed()
		to.Put("/dst/"+journal, "journal")
		again := newMeeting(t, from, to)
		again.sender.search.Path, again.receiver.search.Overwrite = "/src/t", overwrite
		again.mustSucceed()
		if _, left := to.Get("/dst/" + journal); left || !again.receiver.summary.UpToDate {
			t.Errorf("overwrite %t: it is %t that the receiver's journal is left", overwrite, left)
		}
		if _, left := from.Get("/src/" + journal); left != overwrite { // a sender that knows its role changes nothing
			t.Errorf("overwrite %t: it is %t that the sender's journal is left", overwrite, left)
		}
	}
}

// interruptTree leaves what a transfer leaves that is interrupted before it has received anything of /dst/t.
func interruptTree(t *testing.T, to disk.FS) {
	t.Helper()
	tree, err := disk.OpenTree(to, "/dst/t", disk.TreeOptions{})
	must(t, err)
	must(t, tree.Close(false))
}

// The journal of a file of a tree is removed when the interrupted tree is continued.
func TestLeftoversInAnInterruptedTreeAreRemoved(t *testing.T) {
	const journal = "/dst/t/.file.dma-copy-journal"
	from, to := disktest.NewMemory("/", "/src"), newTarget()
	from.Put("/src/file", "content")
	newMeeting(t, from, to).mustSucceed()
	to.Put(journal, "journal")
	interruptTree(t, to)
	again := newMeeting(t, from, to)
	again.mustSucceed()
	if _, left := to.Get(journal); left || again.receiver.summary.Tree.Unchanged != 2 {
		t.Errorf("it is %t that the journal is left, after %+v", left, again.receiver.summary.Tree)
	}
}

// What an interrupted transfer has left of a file that was large then, and small now, is removed when it is replaced.
func TestLeftoversOfASmallFileAreRemoved(t *testing.T) {
	from, to := disktest.NewMemory("/", "/src"), newTarget()
	from.Put("/src/file", "content")
	newMeeting(t, from, to).mustSucceed()
	from.Put("/src/file", "other content")
	to.Put("/dst/t/.file.dma-copy-part", "cont")
	to.Put("/dst/t/.file.dma-copy-journal", "journal")
	interruptTree(t, to)
	again := newMeeting(t, from, to)
	again.receiver.search.Overwrite = true
	again.mustSucceed()
	if text, _ := to.Get("/dst/t/file"); text != "other content" {
		t.Errorf("the file has %q", text)
	}
	for _, name := range []string{".file.dma-copy-part", ".file.dma-copy-journal"} {
		if _, left := to.Get("/dst/t/" + name); left {
			t.Error(name, "is left")
		}
	}
}

// A side that has received symlinks, and would follow them if it sent, has the same tree as well.
func TestReceivedLinksAreCompared(t *testing.T) {
	from, to := disktest.NewMemory("/", "/src", "/src/dir"), newTarget()
	from.Put("/src/file", "content")
	from.Symlink("../file", "/src/dir/link", 1000)
	newMeeting(t, from, to).mustSucceed()
	for _, text := range []string{"../file", "/src/file"} {
		m := newMeeting(t, from, to)
		m.receiver.config.Links = tree.LinksFollow
		m.run()
		if same := text == "../file"; (m.receiver.err == nil) != same {
			t.Errorf("%s: %v", text, m.receiver.err)
		}
		in, err := from.OpenDir("/src/dir")
		must(t, err)
		must(t, in.Remove("link"))
		must(t, in.Close())
		from.Symlink("/src/file", "/src/dir/link", 1000)
	}
}

// A side that has sent what its symlinks point to has the same tree as the other, whichever of them compares.
func TestFollowedLinksAreCompared(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		for _, checksum := range []bool{false, true} {
			from, to := disktest.NewMemory("/", "/src", "/src/dir"), newTarget()
			from.Put("/src/dir/file", "content")
			from.Symlink("dir/file", "/src/a-file", 1000)
			from.Symlink("dir", "/src/z-dir", 1000)
			repeat := func() *meeting {
				m := newMeeting(t, from, to)
				m.dpuSends, m.sender.config.Links = dpuSends, tree.LinksFollow
				m.config(func(c *role.Config) { c.Checksum = checksum })
				return m
			}
			repeat().mustSucceed()
			again := repeat()
			again.mustSucceed()
			if !again.sender.summary.UpToDate || !again.receiver.summary.UpToDate {
				t.Errorf("DPU sends %t, checksum %t: %+v", dpuSends, checksum, again.sender.summary)
			}
			from.Put("/src/dir/file", "another")
			different := repeat()
			different.run()
			if different.sender.err == nil || !strings.Contains(different.sender.err.Error(), "they differ at a-file") {
				t.Errorf("DPU sends %t, checksum %t: %v", dpuSends, checksum, different.sender.err)
			}
		}
	}
}
