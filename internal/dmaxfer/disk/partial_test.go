package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestPartialGetsItsName(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, receive(t, p, newText, wire.DurabilityFull))
		at.mustHold(t, ".file.dma-copy-journal", ".file.dma-copy-part")
		must(t, p.Commit(wire.DurabilityFull))
		p.Discard()
		if kept := p.Keep(); kept != 0 {
			t.Errorf("after the commit %d bytes are kept", kept)
		}
		at.mustContain(t, "file", newText)
		at.mustHold(t, "file")
	})
}

func TestPartialIsDiscarded(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, receive(t, p, newText, wire.DurabilityNone))
		p.Discard()
		p.Discard()
		at.mustHold(t)
	})
}

func TestOldContentStaysUntilCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", oldText)
		want := wanted(len(newText))
		want.Overwrite = true
		p := mustOpen(t, at, "file", want)
		must(t, receive(t, p, newText, wire.DurabilityFile))
		at.mustContain(t, "file", oldText)
		must(t, p.Commit(wire.DurabilityFile))
		at.mustContain(t, "file", newText)
		at.mustHold(t, "file")
	})
}

func TestTargetThatAppearedIsKept(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, receive(t, p, newText, wire.DurabilityFull))
		at.put("file", "another's")
		err := p.Commit(wire.DurabilityFull)
		mustFail(t, err, disk.ErrExists, "already exists: another process created it")
		mustBe(t, err, disk.ErrTarget)
		p.Discard()
		at.mustContain(t, "file", "another's")
		at.mustHold(t, "file")
	})
}

func TestPartialThatVanishedIsNotCommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, receive(t, p, newText, wire.DurabilityFull))
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		must(t, dir.Rename(".file.dma-copy-part", "elsewhere"))
		must(t, dir.Close())
		at.put(".file.dma-copy-part", "not what was received")
		mustFail(t, p.Commit(wire.DurabilityFull), disk.ErrChanged, "removed or replaced")
		p.Discard()
		at.mustContain(t, ".file.dma-copy-part", "not what was received")
		if _, found := at.get("file"); found {
			t.Error("something was committed")
		}
	})
}

// No other transfer may open a received file between its close and its rename.
func TestLockOutlivesTheClose(t *testing.T) {
	at, m := inMemory()
	tried := false
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "rename" {
			tried = true
			_, err := disk.OpenPartial(at.fs, at.path("file"), wanted(len(newText)))
			mustFail(t, err, disk.ErrBusy)
		}
		return nil
	})
	must(t, copyAll(t, faulty, copies["new"], (*disk.Partial).Discard))
	if !tried {
		t.Error("there was no rename")
	}
	at.mustContain(t, "file", newText)
}

// After the rename, the next transfer to the same target may use the name of the journal.
func TestJournalOfTheNextCopyIsKept(t *testing.T) {
	at, m := inMemory()
	renamed := false
	faulty := disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
		renamed = renamed || op == "rename"
		if renamed && op == "stat" && name == journalName {
			at.put(journalName, "another's")
		}
		return nil
	})
	must(t, copyAll(t, faulty, copies["new"], (*disk.Partial).Discard))
	at.mustContain(t, journalName, "another's")
}

// The error names what prevents the target from being created.
func TestCauseOfACreateThatFails(t *testing.T) {
	for why, says := range map[error]string{
		syscall.ENOSPC: "no space left on device: no inode may be left (df -i)",
		syscall.EDQUOT: "disk quota exceeded: remove files of this user there",
		syscall.EMFILE: "too many open files: raise the limit on open files (ulimit -n)",
		syscall.EACCES: "permission denied: choose a directory that this user may write to",
	} {
		for _, name := range []string{partialName, journalName} {
			_, m := inMemory()
			faulty := disktest.NewFaulty(m, func(_ int, op, found string) *disktest.Fault {
				if op == "create" && found == name {
					return &disktest.Fault{Err: why}
				}
				return nil
			})
			_, err := disk.OpenPartial(faulty, "/there/file", wanted(1))
			mustFail(t, err, disk.ErrTarget)
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
	}
}

// The error names a journal that prevents a new partial file and cannot be removed.
func TestJournalInTheWayIsNamed(t *testing.T) {
	at, m := inMemory()
	at.put(journalName, "another's")
	faulty := disktest.NewFaulty(m, func(_ int, op, found string) *disktest.Fault {
		if op == "remove" && found == journalName {
			return &disktest.Fault{Err: syscall.EPERM}
		}
		return nil
	})
	_, err := disk.OpenPartial(faulty, "/there/file", wanted(len(newText)))
	mustFail(t, err, disk.ErrTarget, journalName, "operation not permitted")
	at.mustContain(t, journalName, "another's")
}

// A wrong size must not fill the disk before it is detected.
func TestFullDiskIsFoundBeforeAllocation(t *testing.T) {
	_, m := inMemory()
	m.Limit(1 << 30)
	faulty := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "allocate" {
			t.Error("something was allocated")
		}
		return nil
	})
	p, err := disk.OpenPartial(faulty, "/there/file", wanted(1<<30+1))
	must(t, err)
	defer p.Discard()
	mustFail(t, p.Allocate(t.Context(), nil), disk.ErrNoSpace, "it needs 1.0 GiB and", "are free")
}

func TestBackup(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		want := wanted(len(newText))
		want.Overwrite, want.Backup = true, true
		for i, names := range [][]string{
			{"file"}, {"file", "file~"}, {"file", "file~", "file~2~"}, {"file", "file~", "file~2~", "file~3~"},
		} {
			p := mustOpen(t, at, "file", want)
			must(t, receive(t, p, text(i, len(newText)), wire.DurabilityFull))
			must(t, p.Commit(wire.DurabilityFull))
			at.mustHold(t, names...)
			at.mustContain(t, "file", text(i, len(newText)))
		}
		at.mustContain(t, "file~", text(0, len(newText)))
		at.mustContain(t, "file~2~", text(1, len(newText)))
		at.mustContain(t, "file~3~", text(2, len(newText)))
	})
}

func TestBackupThatIsThereAlready(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", oldText)
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		must(t, dir.Link("file", "file~"))
		must(t, dir.Close())
		want := wanted(len(newText))
		want.Overwrite, want.Backup = true, true
		p := mustOpen(t, at, "file", want)
		must(t, receive(t, p, newText, wire.DurabilityFull))
		must(t, p.Commit(wire.DurabilityFull))
		at.mustContain(t, "file~", oldText)
		at.mustHold(t, "file", "file~")
	})
}

func TestLongestNames(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		for _, name := range []string{
			strings.Repeat("n", 255), "x" + strings.Repeat("\u00fc", 127),
			strings.Repeat("m", 237), strings.Repeat("m", 238),
		} {
			p := mustOpen(t, at, name, wanted(len(newText)))
			must(t, p.WriteAt([]byte(newText), 0))
			must(t, p.Advance(4096))
			p.Keep()
			p = mustOpen(t, at, name, wanted(len(newText)))
			if p.Resumable() != 4096 {
				t.Errorf("of a name of %d bytes %d can be resumed", len(name), p.Resumable())
			}
			must(t, receive(t, p, newText, wire.DurabilityNone))
			must(t, p.Commit(wire.DurabilityNone))
		}
		one := mustOpen(t, at, strings.Repeat("l", 254)+"1", wanted(1))
		two := mustOpen(t, at, strings.Repeat("l", 254)+"2", wanted(1))
		one.Discard()
		two.Discard()
		want := wanted(1)
		want.Overwrite, want.Backup = true, true
		at.put(strings.Repeat("b", 255), oldText)
		_, err := disk.OpenPartial(at.fs, at.path(strings.Repeat("b", 255)), want)
		mustFail(t, err, disk.ErrTarget, "too long to append ~")
	})
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		name                string
		replaced            fs.FileMode // 0: none
		preserve            bool
		sent                uint32
		modeOf022, modeOf77 fs.FileMode
	}{
		{"new", 0, false, 0o777, 0o644, 0o600},
		{"replacing", 0o640, false, 0o777, 0o640, 0o640},
		{"preserved", 0o640, true, 0o755, 0o755, 0o755},
		{"without set-id bits", 0, true, 0o6755, 0o755, 0o755},
	} {
		t.Run(c.name, func(t *testing.T) {
			for mask, mode := range map[uint32]fs.FileMode{0o022: c.modeOf022, 0o077: c.modeOf77} {
				at, m := inMemory()
				m.SetSelf(disk.Self{UID: 7, Umask: mask})
				if c.replaced != 0 {
					m.Put("/there/file", oldText)
					setMode(t, at, "file", uint32(c.replaced))
				}
				want := wanted(len(newText))
				want.Overwrite, want.Preserve.Mode = true, c.preserve
				p := mustOpen(t, at, "file", want)
				must(t, p.Prepare(t.Context(), disk.Metadata{Size: 1, Mode: c.sent}, wire.DurabilityNone, nil))
				must(t, p.Commit(wire.DurabilityNone))
				info, err := at.fs.Stat(at.path("file"))
				must(t, err)
				if info.Mode != mode || info.Size != 1 {
					t.Errorf("with umask %o it is %v of %d bytes, not %v", mask, info.Mode, info.Size, mode)
				}
			}
		})
	}
}

func setMode(t *testing.T, at testDir, name string, mode uint32) {
	t.Helper()
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	file, err := dir.Open(name, true)
	must(t, err)
	must(t, file.SetMode(mode))
	must(t, file.Close())
}

func TestPartialIsPrivate(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		want := wanted(len(newText))
		for range 2 {
			p := mustOpen(t, at, "file", want)
			info, err := at.fs.Stat(at.path(".file.dma-copy-part"))
			must(t, err)
			if info.Mode != 0o600 {
				t.Errorf("a partial has mode %v", info.Mode)
			}
			must(t, receive(t, p, newText, wire.DurabilityNone)) // sets the mode of the target
			p.Keep()
			info, err = at.fs.Stat(at.path(".file.dma-copy-part"))
			must(t, err)
			if info.Mode != 0o600 {
				t.Errorf("a partial that is kept has mode %v", info.Mode)
			}
		}
	})
}

func TestMetadataIsPreserved(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		self := at.fs.Self()
		meta := disk.Metadata{
			Size: 10, Mode: 0o400, Modified: disk.Timestamp{Sec: 77, Nsec: 3}, UID: self.UID,
			Xattrs: xattrs(disk.Xattr{Name: "user.x", Value: []byte("y")}),
		}
		want := wanted(10)
		want.Preserve = disk.Preserve{Mode: true, Times: true, Owner: true}
		p := mustOpen(t, at, "file", want)
		meta.GID = mustInfo(t, p.File()).GID
		must(t, p.Prepare(t.Context(), meta, wire.DurabilityFull, nil))
		must(t, p.Commit(wire.DurabilityFull))
		info, err := at.fs.Stat(at.path("file"))
		must(t, err)
		if info.Mode != 0o400 || info.Modified != meta.Modified || info.Size != 10 {
			t.Errorf("the target is %+v", info)
		}
		want.Preserve.Xattrs = true
		p = mustOpen(t, at, "with attributes", want)
		if err := p.Prepare(t.Context(), meta, wire.DurabilityNone, nil); !errors.Is(err, errors.ErrUnsupported) {
			must(t, err)
			found, err := p.File().Xattrs()
			must(t, err)
			if len(found) == 0 || found[len(found)-1].Name != "user.x" {
				t.Errorf("there are %v", found)
			}
		}
		p.Discard()
	})
}

func TestAttributesThatGiveRightsAreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		want := wanted(1)
		want.Preserve.Xattrs = true
		for _, name := range []string{"security.capability", "trusted.x", "system.posix_acl_access", "user", ""} {
			p := mustOpen(t, at, "file", want)
			meta := disk.Metadata{Size: 1, Xattrs: xattrs(disk.Xattr{Name: name})}
			err := p.Prepare(t.Context(), meta, wire.DurabilityNone, nil)
			mustFail(t, err, disk.ErrTarget, "cannot preserve")
			p.Discard()
		}
	})
}

func TestOwnerThatMayNotBeGiven(t *testing.T) {
	at, _ := inMemory()
	want := wanted(1)
	want.Preserve.Owner = true
	p := mustOpen(t, at, "file", want)
	err := p.Prepare(t.Context(), disk.Metadata{Size: 1, UID: 1}, wire.DurabilityNone, nil)
	mustFail(t, err, disk.ErrTarget, "its owner")
}

func TestHoles(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		for _, sparse := range []bool{false, true} {
			size := int64(4 << 20)
			want := wanted(int(size))
			want.Sparse, want.Overwrite = sparse, true
			p := mustOpen(t, at, "file", want)
			must(t, p.Allocate(t.Context(), nil))
			must(t, p.WriteAt([]byte(newText), 1<<20))
			must(t, p.Punch(1<<20+100, size-1<<20-100))
			must(t, p.Punch(0, 1<<20))
			if info := mustInfo(t, p.File()); info.Size != size+1 || (info.Allocated < size) != sparse {
				t.Errorf("sparse %t: %d bytes are allocated of %d", sparse, info.Allocated, info.Size)
			}
			must(t, p.Prepare(t.Context(), disk.Metadata{Size: size}, wire.DurabilityNone, nil))
			must(t, p.Commit(wire.DurabilityNone))
			at.mustContain(t, "file", strings.Repeat("\x00", 1<<20)+newText[:100]+strings.Repeat("\x00", 3<<20-100))
		}
	})
}

func TestStreamHasTheSizeItEndsWith(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", disk.Wanted{Digest: 1, Resume: true, Sparse: true})
		must(t, p.WriteAt([]byte(newText), 0))
		must(t, p.Punch(int64(len(newText)), 5000))
		must(t, p.Prepare(t.Context(), disk.Metadata{Size: int64(len(newText)) + 5000}, wire.DurabilityFull, nil))
		must(t, p.Commit(wire.DurabilityFull))
		at.mustContain(t, "file", newText+strings.Repeat("\x00", 5000))
		at.mustHold(t, "file")
	})
}

func TestProgressIsTold(t *testing.T) {
	at, _ := inMemory()
	const size = 300 << 20
	p := mustOpen(t, at, "file", wanted(size))
	var allocated, flushed []int64
	must(t, p.Allocate(t.Context(), func(done int64) { allocated = append(allocated, done) }))
	must(t, p.Flush(t.Context(), func(done int64) { flushed = append(flushed, done) }))
	for _, told := range [][]int64{allocated, flushed} {
		if len(told) < 2 || told[0] <= 0 || told[0] >= size || told[len(told)-1] != size {
			t.Errorf("of %d bytes these were told: %v", size, told)
		}
	}
}

func TestStepsEndWithTheirContext(t *testing.T) {
	at, _ := inMemory()
	p := mustOpen(t, at, "file", wanted(10))
	because := errors.New("it was enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	must(t, p.Allocate(ctx, nil))
	cancel(because)
	mustBe(t, p.Allocate(ctx, nil), because)
	mustBe(t, p.Flush(ctx, nil), because)
	mustBe(t, p.Prepare(ctx, disk.Metadata{Size: 10}, wire.DurabilityFile, nil), because)
	must(t, p.Prepare(ctx, disk.Metadata{Size: 10}, wire.DurabilityNone, nil))
}

func TestReadBack(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, p.WriteAt([]byte(newText), 0))
		must(t, p.Flush(t.Context(), nil))
		p.DropCache(0, int64(len(newText)))
		got := make([]byte, len(newText))
		must(t, p.ReadAt(got, 0))
		if string(got) != newText {
			t.Error("what was read back is not what was written")
		}
		mustFail(t, p.ReadAt(got, 1), disk.ErrTarget, "reading", "back")
		p.Discard()
	})
}

func TestTargetThatCannotBe(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		_, err := disk.OpenPartial(at.fs, at.path("absent/file"), wanted(1))
		mustFail(t, err, disk.ErrTarget, "cannot create")
		_, err = disk.OpenPartial(at.fs, at.path(strings.Repeat("n", 256)), wanted(1))
		mustFail(t, err, disk.ErrTarget, "cannot create")
		at.put("file", oldText)
		_, err = disk.OpenPartial(at.fs, at.path("file"), wanted(1))
		mustFail(t, err, disk.ErrExists, "already exists")
		at.mustHold(t, "file")
	})
}
