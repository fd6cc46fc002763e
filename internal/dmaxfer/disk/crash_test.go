package disk_test

import (
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Power is lost after every operation of a transfer, with every possible result.

func TestCrashes(t *testing.T) {
	for _, durability := range durabilities {
		for _, name := range []string{"new", "replacing", "backup", "no resume", "unnamed, replacing"} {
			for _, left := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " durability ", durability, " left ", left), func(t *testing.T) {
					m := prepared(t, copies[name], left)
					m.Record()
					p, err := disk.OpenPartial(m, "/there/file", copies[name])
					must(t, err)
					must(t, receive(t, p, newText, durability))
					before := m.Steps()
					must(t, p.Commit(durability))
					if states := checkCrashes(t, m, copies[name], durability, before); states < 30 {
						t.Errorf("there were only %d states", states)
					}
				})
			}
		}
	}
}

func checkCrashes(
	t *testing.T, m *disktest.Memory, want disk.Wanted, durability disk.Durability, commit int,
) (states int) {
	t.Helper()
	for crash := range m.Crashes() {
		states++
		content, found := crash.FS.Get("/there/file")
		old, whole := found == want.Overwrite && (!found || content == oldText), content == newText
		switch {
		case crash.Step < commit && !old:
			t.Errorf("%s: before the commit there is something else than the old content", crash.What)
		case durability != wire.DurabilityNone && !old && !whole:
			t.Errorf("%s: there are %d bytes that are neither old nor new", crash.What, len(content))
		case durability == wire.DurabilityFull && crash.Step == m.Steps()-1 && !whole:
			t.Errorf("%s: it was committed, and is gone", crash.What)
		}
		if backup, kept := crash.FS.Get("/there/file~"); kept && backup != oldText {
			t.Errorf("%s: the backup is not the old content", crash.What)
		}
		mustCopyAgain(t, crash, want)
		if t.Failed() {
			return states
		}
	}
	return states
}

// mustCopyAgain checks that the next transfer succeeds after a crash. It compares what it resumes with the source.
func mustCopyAgain(t *testing.T, crash disktest.Crash, want disk.Wanted) {
	t.Helper()
	want.Overwrite = true
	p, err := disk.OpenPartial(crash.FS, "/there/file", want)
	if err != nil {
		t.Fatalf("%s: the next copy fails: %v", crash.What, err)
	}
	prefix := p.Resumable()
	if prefix > int64(len(newText)) {
		t.Errorf("%s: %d bytes can be resumed", crash.What, prefix)
	}
	verified := make([]byte, prefix)
	must(t, p.ReadAt(verified, 0))
	if string(verified) != newText[:prefix] {
		must(t, p.WriteAt([]byte(newText[:prefix]), 0))
	}
	must(t, receive(t, p, newText, wire.DurabilityNone))
	must(t, p.Commit(wire.DurabilityNone))
	memoryPlace(crash.FS).mustContain(t, "file", newText)
}

// TestCrashesOfAnInterruptedCopy loses power before, in and after Keep.
func TestCrashesOfAnInterruptedCopy(t *testing.T) {
	at, m := inMemory()
	m.Record()
	interrupt(t, at, 8192)
	resumed := 0
	for crash := range m.Crashes() {
		p, err := disk.OpenPartial(crash.FS, "/there/file", copies["new"])
		must(t, err)
		if p.Resumable() > 0 {
			resumed++
		}
		p.Discard()
		mustCopyAgain(t, crash, copies["new"])
	}
	if resumed == 0 {
		t.Error("nothing was ever left to resume")
	}
}

// The model must lose content that is not flushed, otherwise the tests above could not fail.
func TestCrashesLoseWhatIsNotFlushed(t *testing.T) {
	for _, durability := range []disk.Durability{wire.DurabilityNone, wire.DurabilityFile} {
		m := prepared(t, copies["replacing"], false)
		m.Record()
		p, err := disk.OpenPartial(m, "/there/file", copies["replacing"])
		must(t, err)
		must(t, receive(t, p, newText, durability))
		must(t, p.Commit(durability))
		seen := make(map[string]int)
		for crash := range m.Crashes() {
			if crash.Step == m.Steps()-1 {
				content, _ := crash.FS.Get("/there/file")
				seen[content]++
			}
		}
		want := map[disk.Durability]int{wire.DurabilityNone: 5, wire.DurabilityFile: 2}[durability]
		if len(seen) != want || seen[oldText] == 0 || seen[newText] == 0 {
			t.Errorf("durability %d: there were %d contents, not %d", durability, len(seen), want)
		}
	}
}
