package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Every file operation of a transfer fails, one after the other.

var copies = map[string]disk.Wanted{
	"new":                wanted(len(newText)),
	"sparse":             with(func(w *disk.Wanted) { w.Sparse = true }),
	"no resume":          with(func(w *disk.Wanted) { w.Resume = false }),
	"replacing":          with(func(w *disk.Wanted) { w.Overwrite = true }),
	"unnamed, replacing": with(func(w *disk.Wanted) { w.Overwrite, w.Backup, w.Resume = true, true, false }),
	"filled":             with(func(w *disk.Wanted) { w.Fill = true }),
	"backup":             with(func(w *disk.Wanted) { w.Overwrite, w.Backup = true, true }),
	"all preserved": with(func(w *disk.Wanted) {
		w.Preserve = disk.Preserve{Mode: true, Times: true, Owner: true, Xattrs: true}
	}),
}

func with(change func(w *disk.Wanted)) disk.Wanted {
	want := wanted(len(newText))
	change(&want)
	return want
}

// copyAll executes a whole transfer and calls giveUp at the first error.
func copyAll(t *testing.T, on disk.FS, want disk.Wanted, giveUp func(*disk.Partial)) error {
	p, err := disk.OpenPartial(on, "/there/file", want)
	if err != nil {
		return err
	}
	defer giveUp(p)
	if err := p.Punch(p.Resumable(), 100); err != nil {
		return err
	}
	if err := write(t, p, newText); err != nil {
		return err
	}
	meta := disk.Metadata{
		Size: int64(len(newText)), Mode: 0o640, UID: on.Self().UID, Xattrs: xattrs(disk.Xattr{Name: "user.x"}),
	}
	if err := p.Prepare(t.Context(), meta, wire.DurabilityFull, nil); err != nil {
		return err
	}
	return p.Commit(wire.DurabilityFull)
}

// prepared returns a file system for copyAll; left says that an earlier transfer was interrupted there.
func prepared(t *testing.T, want disk.Wanted, left bool) *disktest.Memory {
	at, m := inMemory()
	if want.Fill {
		m.Fills()
	}
	if left {
		interrupt(t, at, 8192)
	}
	if want.Overwrite {
		m.Put("/there/file", oldText)
	}
	return m
}

func sweep(t *testing.T, test func(t *testing.T, want disk.Wanted, left bool, fault disktest.Fault)) {
	for name, want := range copies {
		for _, left := range []bool{false, true} {
			for _, fault := range []disktest.Fault{{Err: unix.EIO}, {Err: unix.ENOSPC}, {Err: unix.EIO, Done: true}} {
				t.Run(fmt.Sprint(name, " left ", left, " ", fault.Err, " done ", fault.Done), func(t *testing.T) {
					test(t, want, left, fault)
				})
			}
		}
	}
}

func TestEveryOperationFails(t *testing.T) {
	sweep(t, func(t *testing.T, want disk.Wanted, left bool, fault disktest.Fault) {
		for n, fired := 0, true; fired; n++ {
			m := prepared(t, want, left)
			faulty := disktest.NewFaulty(m, disktest.FailAt(n, fault))
			err := copyAll(t, faulty, want, (*disk.Partial).Discard)
			if fired = faulty.Fired(); fired {
				mustReportOutcome(t, m, want, left, fault, err, faulty.Trace()[n])
			} else {
				must(t, err)
			}
			if open := m.Handles(); open != 0 {
				t.Errorf("after a fault in %q %d handles are open", faulty.Trace()[n], open)
			}
		}
	})
}

// mayFailSilently reports whether a failure of the operation does not affect the result: it closes a file that was only
// read, finds out what can be resumed, or makes the transfer faster.
func mayFailSilently(op string, want disk.Wanted) bool {
	if !want.Resume && op == "close "+partialName {
		return true // it was only a placeholder
	}
	return slices.Contains([]string{
		"close there", "close " + journalName, "open " + journalName, "stat " + journalName, "read " + journalName,
		"filler .file.dma-copy-part",
	}, op)
}

func mustReportOutcome(
	t *testing.T, m *disktest.Memory, want disk.Wanted, left bool, fault disktest.Fault, err error, op string,
) {
	t.Helper()
	content, found := m.Get("/there/file")
	if err == nil {
		if !mayFailSilently(op, want) {
			t.Errorf("the fault in %q was not reported", op)
		}
		if content != newText {
			t.Errorf("after a fault in %q the copy succeeded, and its target has %d other bytes", op, len(content))
		}
		return
	}
	mustFail(t, err, disk.ErrTarget)
	mustBe(t, err, fault.Err)
	if fault.Err == unix.ENOSPC && (strings.HasPrefix(op, "write ") || strings.HasPrefix(op, "allocate ")) {
		mustBe(t, err, disk.ErrNoSpace)
	}
	old := found == want.Overwrite && (!found || content == oldText)
	if whole := content == newText; !old && !whole {
		t.Errorf("after a fault in %q the target has %d bytes that are neither old nor new", op, len(content))
	}
	if !left {
		mustLeaveNothing(t, m, fault, op, content == newText)
	}
}

// mustLeaveNothing checks that no files remain, except those that could not be removed, or that a failed operation
// made.
func mustLeaveNothing(t *testing.T, m *disktest.Memory, fault disktest.Fault, op string, named bool) {
	t.Helper()
	allowed := []string{"file", "file~"}
	if fault.Done || strings.HasPrefix(op, "remove ") || strings.HasPrefix(op, "open ") ||
		strings.HasSuffix(op, journalName) || strings.HasSuffix(op, "file~") ||
		named && op == "stat "+partialName {
		allowed = append(allowed, journalName, partialName, ".file.dma-copy-new")
	}
	for _, name := range memoryPlace(m).names(t) {
		if !slices.Contains(allowed, name) {
			t.Errorf("after a fault in %q %s is left", op, name)
		}
	}
}

// TestEveryOperationFailsAndTheNextCopySucceeds gives up with Keep, and transfers again without faults.
func TestEveryOperationFailsAndTheNextCopySucceeds(t *testing.T) {
	sweep(t, func(t *testing.T, want disk.Wanted, left bool, fault disktest.Fault) {
		for n, fired := 0, true; fired; n++ {
			m := prepared(t, want, left)
			faulty := disktest.NewFaulty(m, disktest.FailAt(n, fault))
			err := copyAll(t, faulty, want, func(p *disk.Partial) { p.Keep() })
			fired = faulty.Fired()
			if err == nil {
				continue
			}
			again := want
			again.Overwrite = true
			if err := copyAll(t, m, again, (*disk.Partial).Discard); err != nil {
				t.Errorf("after a fault in %q the next copy failed: %v", faulty.Trace()[n], err)
			}
			memoryPlace(m).mustContain(t, "file", newText)
			if open := m.Handles(); open != 0 {
				t.Errorf("after a fault in %q %d handles are open", faulty.Trace()[n], open)
			}
		}
	})
}

// It is unknown what a failed flush has written, and a second flush would succeed.
func TestFailedFlushIsNotTrusted(t *testing.T) {
	for _, op := range []string{"sync", "flush"} {
		m := prepared(t, copies["new"], false)
		flushes := 0
		faulty := disktest.NewFaulty(m, func(_ int, found, _ string) *disktest.Fault {
			if found == op {
				flushes++
				return &disktest.Fault{Err: unix.EIO}
			}
			return nil
		})
		err := copyAll(t, faulty, copies["new"], func(p *disk.Partial) {
			if kept := p.Keep(); kept != 0 {
				t.Errorf("%d bytes are trusted", kept)
			}
		})
		mustFail(t, err, disk.ErrTarget, "flushing")
		memoryPlace(m).mustHold(t)
		if flushes != 1 {
			t.Errorf("there were %d attempts to %s", flushes, op)
		}
	}
}

func TestOrderOfOperations(t *testing.T) {
	m := prepared(t, copies["backup"], false)
	m.Record()
	must(t, copyAll(t, m, copies["backup"], (*disk.Partial).Discard))
	const want = `create .file.dma-copy-part
create .file.dma-copy-journal
write .file.dma-copy-journal
write .file.dma-copy-part
truncate .file.dma-copy-part
allocate .file.dma-copy-part
write .file.dma-copy-part
write .file.dma-copy-part
truncate .file.dma-copy-part
chmod .file.dma-copy-part
sync .file.dma-copy-part
link file file~
rename .file.dma-copy-part file
remove .file.dma-copy-journal
sync /there
`
	if got := m.Trace(); got != want {
		t.Errorf("the operations were\n%s", got)
	}
}

func TestWithoutSupport(t *testing.T) {
	for _, op := range []string{"lock", "punch", "allocate"} {
		m := prepared(t, copies["new"], false)
		faulty := disktest.NewFaulty(m, func(_ int, found, _ string) *disktest.Fault {
			if found == op {
				return &disktest.Fault{Err: unix.EOPNOTSUPP}
			}
			return nil
		})
		must(t, copyAll(t, faulty, copies["sparse"], (*disk.Partial).Discard))
		must(t, copyAll(t, faulty, copies["replacing"], (*disk.Partial).Discard))
		memoryPlace(m).mustContain(t, "file", newText)
		memoryPlace(m).mustHold(t, "file")
	}
}

// Without a lock the next transfer could not know that this one has ended, so nothing is kept.
func TestNothingIsKeptWithoutLocks(t *testing.T) {
	m := prepared(t, copies["new"], false)
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "lock" {
			return &disktest.Fault{Err: unix.ENOSYS}
		}
		return nil
	})
	p, err := disk.OpenPartial(faulty, "/there/file", copies["new"])
	must(t, err)
	must(t, write(t, p, newText))
	if kept := p.Keep(); kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
	memoryPlace(m).mustHold(t)
}

// Without locks it is unknown whether another process is still writing to a partial file.
func TestLeftoverWithoutLocksIsRefused(t *testing.T) {
	m := prepared(t, copies["new"], true)
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "lock" {
			return &disktest.Fault{Err: unix.ENOLCK}
		}
		return nil
	})
	mustFail(t, copyAll(t, faulty, copies["new"], (*disk.Partial).Discard), disk.ErrTarget, "cannot lock")
	memoryPlace(m).mustHold(t, journalName, partialName)
}

// Where blocks cannot be reserved, only a mapped file is filled with zeros.
func TestAllocationWithoutReservation(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		faulty, want := withoutAllocation(disktest.NewMemory("/there")), copies["new"]
		want.Mapped = mapped
		p, err := disk.OpenPartial(faulty, "/there/file", want)
		must(t, err)
		must(t, p.Allocate(t.Context(), nil))
		if info := mustInfo(t, p.File()); (info.Allocated > 0) != mapped || info.Size != want.Size+1 {
			t.Errorf("mapped %t: %d bytes are allocated of %d", mapped, info.Allocated, info.Size)
		}
		p.Discard()
	}
}

// A file that may be compressed has no blocks reserved, unless it is mapped.
func TestCompressedFileIsNotReserved(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		at, m := inMemory()
		m.Without(disktest.Lacking{Blocks: true})
		want := copies["new"]
		want.Mapped = mapped
		p := mustOpen(t, at, "file", want)
		must(t, p.Allocate(t.Context(), nil))
		if info := mustInfo(t, p.File()); (info.Allocated > 0) != mapped || info.Size != want.Size+1 {
			t.Errorf("mapped %t: %d bytes are allocated of %d", mapped, info.Allocated, info.Size)
		}
	}
}

// Resumed content stays as it is where blocks cannot be reserved.
func TestAllocationKeepsWhatWasResumed(t *testing.T) {
	m := prepared(t, copies["new"], true)
	p, err := disk.OpenPartial(withoutAllocation(m), "/there/file", copies["new"])
	must(t, err)
	must(t, p.Allocate(t.Context(), nil))
	memoryPlace(m).mustContain(t, partialName, newText[:8192]+strings.Repeat("\x00", len(newText)-8192+1))
	p.Discard()
}

// withoutAllocation returns a file system that cannot reserve blocks.
func withoutAllocation(m *disktest.Memory) disk.FS {
	return disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "allocate" {
			return &disktest.Fault{Err: unix.EOPNOTSUPP}
		}
		return nil
	})
}
