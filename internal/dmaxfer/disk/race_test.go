package disk_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Several transfers use the same name at the same time.

// TestReceiversOfOneName lets several transfers replace one target repeatedly. Each has it alone, or fails because it
// is busy or because another transfer has just replaced it.
func TestReceiversOfOneName(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", text(0, len(newText)))
		var all sync.WaitGroup
		for receiver := range 4 {
			all.Go(func() {
				for round := range 10 {
					err := copyText(t, at, text(receiver, len(newText)), round%3 == 0)
					if err != nil && !errors.Is(err, disk.ErrBusy) && !errors.Is(err, disk.ErrChanged) {
						t.Errorf("receiver %d: %v", receiver, err)
					}
				}
			})
		}
		all.Wait()
		got, _ := at.get("file")
		whole := false
		for receiver := range 4 {
			whole = whole || got == text(receiver, len(newText))
		}
		if !whole {
			t.Errorf("the target's %d bytes are of more than one copy", len(got))
		}
		at.mustHold(t, "file")
	})
}

func copyText(t *testing.T, at testDir, text string, giveUp bool) error {
	want := with(func(w *disk.Wanted) { w.Overwrite, w.Resume = true, false })
	p, err := disk.OpenPartial(at.fs, at.path("file"), want)
	if err != nil {
		return err
	}
	defer p.Discard()
	if err := receive(t, p, text, wire.DurabilityNone); err != nil || giveUp {
		return err
	}
	return p.Commit(wire.DurabilityNone)
}

// TestPartialThatChangesHands opens a partial file at each step of the end of its transfer.
func TestPartialThatChangesHands(t *testing.T) {
	for _, at := range []string{"open", "lock"} {
		for name, end := range map[string]func(dir disk.Dir) error{
			"discarded": func(dir disk.Dir) error { return dir.Remove(partialName) },
			"committed": func(dir disk.Dir) error { return dir.Rename(partialName, "other") },
		} {
			t.Run(name+" at "+at, func(t *testing.T) {
				there, m := inMemory()
				interrupt(t, there, 8192)
				dir, err := m.OpenDir("/there")
				must(t, err)
				ended := false
				faulty := disktest.NewFaulty(m, func(_ int, op, base string) *disktest.Fault {
					if op == at && base == partialName && !ended {
						ended = true
						must(t, end(dir))
					}
					return nil
				})
				must(t, copyAll(t, faulty, copies["new"], (*disk.Partial).Discard))
				there.mustContain(t, "file", newText)
				if other, found := there.get("other"); found && other != newText[:8192] {
					t.Error("the other copy's target was written to")
				}
				must(t, dir.Close())
				if open := m.Handles(); open != 0 {
					t.Errorf("%d handles are still open", open)
				}
			})
		}
	}
}

// A name that always leads to another file is reported as busy after a limited number of attempts.
func TestPartialThatNeverStops(t *testing.T) {
	there, m := inMemory()
	there.put(partialName, "")
	setMode(t, there, partialName, 0o600)
	faulty := disktest.NewFaulty(m, func(_ int, op, base string) *disktest.Fault {
		if op == "lock" {
			m.Put("/there/"+partialName, "another one")
		}
		return nil
	})
	_, err := disk.OpenPartial(faulty, "/there/file", copies["new"])
	mustFail(t, err, disk.ErrBusy)
	there.mustContain(t, partialName, "another one")
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are still open", open)
	}
}
