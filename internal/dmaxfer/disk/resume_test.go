package disk_test

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const journalName, partialName = ".file.dma-copy-journal", ".file.dma-copy-part"

// interrupt leaves a partial file with this many verified bytes.
func interrupt(t *testing.T, at testDir, prefix int64) {
	t.Helper()
	p := mustOpen(t, at, "file", wanted(len(newText)))
	must(t, p.Allocate(t.Context(), nil))
	must(t, p.WriteAt([]byte(newText), 0))
	must(t, p.Advance(prefix))
	if kept := p.Keep(); kept != prefix {
		t.Errorf("%d bytes were kept, not %d", kept, prefix)
	}
}

func TestResumed(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		at.mustContain(t, partialName, newText[:8192]) // unverified bytes are not kept
		p := mustOpen(t, at, "file", wanted(len(newText)))
		if p.Resumable() != 8192 || p.Discarded() != "" {
			t.Errorf("%d bytes can be resumed; %s", p.Resumable(), p.Discarded())
		}
		got := make([]byte, 8192)
		must(t, p.ReadAt(got, 0))
		if string(got) != newText[:8192] {
			t.Error("what is left is something else")
		}
		must(t, receive(t, p, newText, wire.DurabilityFull))
		must(t, p.Commit(wire.DurabilityFull))
		at.mustContain(t, "file", newText)
		at.mustHold(t, "file")
	})
}

// A transfer that is interrupted while it verifies resumed bytes keeps those that it has not verified yet.
func TestInterruptedWhileResuming(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, p.Advance(4096))
		if kept := p.Keep(); kept != 8192 {
			t.Errorf("%d bytes were kept", kept)
		}
		p = mustOpen(t, at, "file", wanted(len(newText)))
		if p.Resumable() != 8192 {
			t.Errorf("%d bytes can be resumed", p.Resumable())
		}
		p.Discard()
		at.mustHold(t)
	})
}

// Files that a hung call may still use stay open and locked. The verified bytes can be resumed after that call.
func TestAbandonedPartial(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, p.Allocate(t.Context(), nil))
		must(t, p.WriteAt([]byte(newText), 0))
		must(t, p.Advance(8192))
		if kept := p.Abandon(true); kept != 8192 {
			t.Errorf("%d bytes are kept", kept)
		}
		_, err := disk.OpenPartial(at.fs, at.path("file"), wanted(len(newText)))
		mustBe(t, err, disk.ErrBusy)
		must(t, p.WriteAt([]byte(newText), 0)) // the hung call returns
		if kept := p.Keep(); kept != 8192 {
			t.Errorf("%d bytes are kept in the end", kept)
		}
		p = mustOpen(t, at, "file", wanted(len(newText)))
		if p.Resumable() != 8192 {
			t.Errorf("%d bytes can be resumed", p.Resumable())
		}
		p.Discard()
	})
}

// After Abandon the names may belong to another transfer when the files are closed.
func TestAbandonedNamesAreGivenUp(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		p := mustOpen(t, at, "file", wanted(len(newText)))
		must(t, p.WriteAt([]byte(newText), 0))
		must(t, p.Advance(8192))
		if kept := p.Abandon(false); kept != 0 {
			t.Errorf("%d bytes are kept of what is not wanted", kept)
		}
		at.mustHold(t)
		interrupt(t, at, 4096)
		p.Discard()
		at.mustHold(t, journalName, partialName)
	})
}

func TestNothingIsKeptOfNothing(t *testing.T) {
	for name, change := range map[string]func(w *disk.Wanted){
		"nothing verified": func(*disk.Wanted) {},
		"without digest":   func(w *disk.Wanted) { w.Digest = 0 },
		"not to resume":    func(w *disk.Wanted) { w.Resume = false },
		"a stream":         func(w *disk.Wanted) { w.Known = false },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				want := wanted(len(newText))
				change(&want)
				p := mustOpen(t, at, "file", want)
				must(t, p.WriteAt([]byte(newText), 0))
				if name != "nothing verified" {
					must(t, p.Advance(4096))
				}
				if kept := p.Keep(); kept != 0 {
					t.Errorf("%d bytes were kept", kept)
				}
				at.mustHold(t)
			})
		})
	}
}

func TestWhatIsLeftOfAnotherCopyIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *disk.Wanted)
		why    string
	}{
		"size":     {func(w *disk.Wanted) { w.Size++ }, "another file"},
		"time":     {func(w *disk.Wanted) { w.Modified.Sec++ }, "another file"},
		"fraction": {func(w *disk.Wanted) { w.Modified.Nsec++ }, "another file"},
		"identity": {func(w *disk.Wanted) { w.Identity[15]++ }, "another file"},
		"digest":   {func(w *disk.Wanted) { w.Digest++ }, "another digest algorithm"},
		"resume":   {func(w *disk.Wanted) { w.Resume = false }, "cannot resume"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				interrupt(t, at, 8192)
				want := wanted(len(newText))
				c.change(&want)
				mustStartAnew(t, at, want, c.why)
			})
		})
	}
}

func mustStartAnew(t *testing.T, at testDir, want disk.Wanted, why string) {
	t.Helper()
	p := mustOpen(t, at, "file", want)
	said := p.Discarded()
	if p.Resumable() != 0 || !strings.Contains(said, why) || !strings.Contains(said, at.path("file")) {
		t.Errorf("%d bytes can be resumed; %q", p.Resumable(), p.Discarded())
	}
	if size := mustInfo(t, p.File()).Size; size != 0 {
		t.Errorf("%d bytes are left", size)
	}
	p.Discard()
	at.mustHold(t)
}

// TestDamagedJournals flips each bit of a journal, and truncates it to each length.
func TestDamagedJournals(t *testing.T) {
	at, m := inMemory()
	interrupt(t, at, 8192)
	whole, _ := at.get(journalName)
	left, _ := at.get(partialName)
	damaged := []string{whole + "\x00", whole + whole}
	for i := range len(whole) {
		damaged = append(damaged, whole[:i])
		for bit := range 8 {
			changed := []byte(whole)
			changed[i] ^= 1 << bit
			damaged = append(damaged, string(changed))
		}
	}
	for _, journal := range damaged {
		m.Put(at.path(journalName), journal)
		m.Put(at.path(partialName), left)
		mustStartAnew(t, at, wanted(len(newText)), "its journal is damaged")
	}
}

func TestPartialsThatDoNotFitTheirJournal(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		at.put(partialName, newText[:8191])
		setMode(t, at, partialName, 0o600)
		mustStartAnew(t, at, wanted(len(newText)), "shorter than its journal says")
		at.put(partialName, newText)
		mustStartAnew(t, at, wanted(len(newText)), "its journal is missing")
	})
}

func TestJournalWithoutPartialIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put(journalName, "whatever")
		p := mustOpen(t, at, "file", wanted(len(newText)))
		if p.Resumable() != 0 || p.Discarded() != "" {
			t.Errorf("%d bytes can be resumed; %s", p.Resumable(), p.Discarded())
		}
		must(t, receive(t, p, newText, wire.DurabilityNone))
		must(t, p.Commit(wire.DurabilityNone))
		at.mustHold(t, "file")
	})
}

// A killed transfer cannot write its journal, so the journal must have been updated before.
func TestJournalHearsOfProgress(t *testing.T) {
	at, _ := inMemory()
	const size = 100 << 20
	want := wanted(size)
	want.Sparse = true
	p := mustOpen(t, at, "file", want)
	must(t, p.Allocate(t.Context(), nil))
	for done := int64(0); done <= 60<<20; done += 1 << 20 {
		must(t, p.Advance(done))
	}
	found, err := disk.FindPartials(at.fs, at.folder)
	must(t, err)
	if len(found) != 1 || found[0].Prefix < 40<<20 || found[0].Prefix > 60<<20 ||
		found[0].Total != size || !found[0].InUse {
		t.Errorf("there is %+v", found)
	}
}

func TestAdvanceAllocatesNothing(t *testing.T) {
	at := onDisk(t, t.TempDir())
	want := wanted(1 << 40)
	want.Sparse = true
	p := mustOpen(t, at, "file", want)
	done := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		done += 17 << 20
		must(t, p.Advance(done))
	}); n != 0 {
		t.Errorf("%v allocations for each", n)
	}
}

// If the target is not committed, its owner is set back.
func TestKeptPartialBelongsToWhoResumes(t *testing.T) {
	at, m := inMemory()
	m.SetSelf(disk.Self{UID: 0})
	want := wanted(len(newText))
	want.Preserve.Owner = true
	p := mustOpen(t, at, "file", want)
	must(t, write(t, p, newText))
	must(t, p.Prepare(t.Context(), disk.Metadata{Size: want.Size, UID: 5, GID: 6}, wire.DurabilityNone, nil))
	if info := mustInfo(t, p.File()); info.UID != 5 || info.GID != 6 {
		t.Errorf("the owner is %d of %d", info.UID, info.GID)
	}
	p.Keep()
	p = mustOpen(t, at, "file", want)
	if p.Resumable() != want.Size {
		t.Errorf("%d bytes can be resumed", p.Resumable())
	}
}

// A transfer that was killed between Prepare and Commit leaves a partial file with the target's mode.
func TestSealedPartialIsResumed(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		setMode(t, at, partialName, 0o444)
		p := mustOpen(t, at, "file", wanted(len(newText)))
		if p.Resumable() != 8192 || mustInfo(t, p.File()).Mode != 0o600 {
			t.Errorf("%d bytes can be resumed", p.Resumable())
		}
		p.Discard()
	})
}
