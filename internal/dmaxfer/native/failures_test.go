package native

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// newSmallSource returns a source of so many small files.
func newSmallSource(files int) *disktest.Memory {
	m := disktest.NewMemory("/", "/src")
	for i := range files {
		m.Put(fmt.Sprintf("/src/f%03d", i), fmt.Sprint(i))
	}
	return m
}

// failAfter returns a Plan by which all of these operations fail after the first n.
func failAfter(n int, operation string) disktest.Plan {
	done := 0
	return func(_ int, op, name string) *disktest.Fault {
		if !strings.HasPrefix(op+" "+name, operation) {
			return nil
		}
		if done++; done > n {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	}
}

func failFast(m *meeting) { m.sender.config.FailFast = true }

// Files that wait for a flush, or for their names, are removed when the transfer fails: nothing is left but what has
// its final name, and nothing is open.
func TestStagedFilesAreDiscarded(t *testing.T) {
	for name, c := range map[string]struct {
		fails  disktest.Plan
		change func(m *meeting)
	}{
		"the flush":        {fails: failAfter(0, "syncfs")},
		"the second flush": {fails: failAfter(1, "syncfs")},
		"a file of a pack": {fails: failAfter(3, "write"), change: failFast},
		"a name":           {fails: failAfter(3, "name"), change: failFast},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t, newSmallSource(50), newTarget())
			m.receiver.config.Durability = wire.DurabilityFull
			if c.change != nil {
				c.change(m)
			}
			faulty := m.onReceiver(c.fails)
			m.run()
			mustBe(t, m.receiver.err, unix.EIO)
			if m.sender.err == nil || !faulty.Fired() {
				t.Errorf("the sender ended with %v", m.sender.err)
			}
			for path := range describeTree(t, m.to, "/dst/t") {
				if strings.HasPrefix(path, ".f") {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

// A transfer that ends with the first entry that fails has reported what was committed before, on both sides.
func TestCommittedFilesAreReportedBeforeAFailure(t *testing.T) {
	for _, durability := range []wire.Durability{
		wire.DurabilityNone, wire.DurabilityFile, wire.DurabilityFull,
	} {
		for _, dpuSends := range []bool{false, true} {
			m := newMeeting(t, newSmallSource(50), newTarget())
			m.dpuSends, m.receiver.config.Durability = dpuSends, durability
			failFast(m)
			m.onReceiver(failAfter(3, "name"))
			m.run()
			mustBe(t, m.receiver.err, unix.EIO)
			found := 0
			for path := range describeTree(t, m.to, "/dst/t") {
				if path == "." {
					continue
				}
				found++
				for side, p := range map[string]*party{"sender": m.sender, "receiver": m.receiver} {
					if p.actions()[path] != job.Copied.String() {
						t.Errorf("%s: %s is there, and the %s was not told", durability, path, side)
					}
				}
			}
			if found != 3 {
				t.Errorf("%s: %d files are there", durability, found)
			}
		}
	}
}

// Where files cannot be written without a name, they have temporary ones until they are flushed. Those are removed.
func TestTemporaryNamesAreRemoved(t *testing.T) {
	for _, operation := range []string{"write", "sync .f", "rename"} {
		m := newMeeting(t, newSmallSource(50), newTarget())
		m.to.Without(disktest.Lacking{SyncFS: true, Unnamed: true})
		m.receiver.config.Durability, m.sender.config.FailFast = wire.DurabilityFull, true
		faulty := m.onReceiver(failAfter(5, operation))
		m.run()
		mustBe(t, m.receiver.err, unix.EIO)
		if !faulty.Fired() {
			t.Errorf("%s did not fail", operation)
		}
		for path := range describeTree(t, m.to, "/dst/t") {
			if strings.HasPrefix(path, ".f") {
				t.Errorf("%s: %s is left", operation, path)
			}
		}
	}
}

// A source that changes while it is sent fails the entries that have changed, and nothing else.
func TestTreeThatChanges(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		from := newTreeSource(t)
		m := newMeeting(t, from, newTarget())
		m.dpuSends = dpuSends
		changed := false
		m.sender.search.FS = disktest.NewFaulty(from, func(_ int, op, name string) *disktest.Fault {
			if op == "open" && name == "huge" && !changed { // after the walk
				changed = true
				return &disktest.Fault{Err: unix.EACCES}
			}
			return nil
		})
		m.mustFailInPart("z/huge")
		if _, found := m.to.Get("/dst/t/z/huge"); found {
			t.Error("a file that cannot be read has a name")
		}
		if text, _ := m.to.Get("/dst/t/small"); text != "small" {
			t.Errorf("another file has %q", text)
		}
	}
}

// A file that changes while it is read fails with ErrSourceChanged on the sender, and is not committed.
func TestFileThatChangesDuringTheTransfer(t *testing.T) {
	from := disktest.NewMemory("/", "/src")
	from.Put("/src/a", roletest.Repeated("a", 60*4096))
	from.Put("/src/b", "b")
	m := newMeeting(t, from, newTarget())
	reads := 0
	m.sender.search.FS = disktest.NewFaulty(from, func(_ int, op, name string) *disktest.Fault {
		if op == "read" && name == "a" {
			if reads++; reads == 20 {
				from.Write("/src/a", "changed", 0)
			}
		}
		return nil
	})
	m.mustFailInPart("a")
	mustBe(t, m.sender.summary.Tree.Failures[0].Err, disk.ErrSourceChanged)
	if text, _ := m.to.Get("/dst/t/b"); text != "b" {
		t.Errorf("the other file has %q", text)
	}
	if _, found := m.to.Get("/dst/t/a"); found {
		t.Error("a file that changed has its name")
	}
}

// A file that fails is closed, and counted, when no lane writes it any more.
func TestFailedFileIsClosedAfterItsLastWrite(t *testing.T) {
	from := disktest.NewMemory("/", "/src")
	from.Put("/src/a", roletest.Repeated("a", 60*4096))
	from.Put("/src/b", "b")
	m := newMeeting(t, from, newTarget())
	writes := 0
	var writing atomic.Bool
	m.onReceiver(func(_ int, op, name string) *disktest.Fault {
		if name != ".a.dma-copy-part" {
			return nil
		}
		if op != "write" {
			if writing.Load() {
				t.Errorf("%s of %s during a write", op, name)
			}
			return nil
		}
		switch writes++; writes {
		case 1:
			hang := make(chan struct{})
			writing.Store(true)
			time.AfterFunc(time.Second, func() { writing.Store(false); close(hang) })
			return &disktest.Fault{Hang: hang}
		case 2:
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	})
	m.mustFailInPart("a")
	if writes < 2 {
		t.Errorf("%d writes", writes)
	}
}

// What the sender cannot even examine is counted on both sides, and the rest arrives.
func TestEntriesThatCannotBeAnnounced(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.sender.search.FS = disktest.NewFaulty(m.from, failing("stat small", "open b"))
	m.sender.config.Progress = &job.Progress{}
	m.run()
	if s := m.sender.config.Progress.Sample(); s.Files != s.FilesFound || !s.Walked {
		t.Errorf("%d of %d entries are decided", s.Files, s.FilesFound)
	}
	mustBe(t, m.sender.err, job.ErrSomeFailed)
	mustBe(t, m.receiver.err, job.ErrSomeFailed)
	if s, r := m.sender.summary.Tree.Failed, m.receiver.summary.Tree.Failed; s != r || s == 0 {
		t.Errorf("the sender counts %d failures, the receiver %d", s, r)
	}
	if text, _ := m.to.Get("/dst/t/a/slot"); text != roletest.Repeated("slot", 4096) {
		t.Error("another file has not arrived")
	}
}

// Both sides stop at the first failure if either wants to.
func TestFailFast(t *testing.T) {
	for _, wanted := range []func(m *meeting){
		func(m *meeting) { m.sender.config.FailFast = true },
		func(m *meeting) { m.receiver.config.FailFast = true },
	} {
		m := newMeeting(t, newTreeSource(t), newTarget())
		wanted(m)
		m.onReceiver(failing("name small"))
		m.run()
		mustBe(t, m.receiver.err, unix.EIO)
		if !abortedWith(m.sender.err, wire.AbortTarget) {
			t.Errorf("the sender ended with %v", m.sender.err)
		}
	}
}

// A comparison or a dry run that ends early closes the directories that it has looked into.
func TestInterruptedComparisonClosesDirectories(t *testing.T) {
	for _, dryRun := range []bool{false, true} {
		m := newMeeting(t, newTreeSource(t), newTarget())
		m.mustSucceed()
		again := newMeeting(t, m.from, m.to)
		again.sender.config.Checksum, again.sender.config.FailFast = true, true
		again.receiver.config.DryRun, again.receiver.search.Overwrite = dryRun, dryRun
		again.onReceiver(failing("read deep"))
		again.run()
		mustBe(t, again.receiver.err, unix.EIO)
		if again.sender.err == nil {
			t.Error("the sender did not fail")
		}
	}
}

// The limit of either side on the holes of a file fails that file of a tree, and no other one.
func TestHolesOfAFileOfATree(t *testing.T) {
	for name, limit := range map[string]func(m *meeting){
		"sender":   func(m *meeting) { m.sender.config.MaxHoles = 64 << 10 },
		"receiver": func(m *meeting) { m.receiver.config.MaxHoles = 64 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			from := disktest.NewMemory("/", "/src")
			in, err := from.OpenDir("/src")
			must(t, err)
			for path, size := range map[string]int64{"many": 128 << 10, "few": 48 << 10, "others": 48 << 10} {
				file, err := in.Create(path)
				must(t, err)
				must(t, errors.Join(file.Truncate(size), file.Close()))
			}
			must(t, in.Close())
			m := newMeeting(t, from, newTarget())
			m.config(func(c *role.Config) { c.Digest = digest.SHA256 })
			limit(m)
			m.mustFailInPart("many")
			for _, p := range []*party{m.sender, m.receiver} {
				text := p.summary.Tree.Failures[0].Err.Error()
				if !strings.Contains(text, "many has more than 64 KiB of holes") {
					t.Error(text)
				}
			}
			if _, found := m.to.Get("/dst/t/.many.dma-copy-part"); found {
				t.Error("a part of the file is left")
			}
		})
	}
}
