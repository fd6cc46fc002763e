package disk_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// remote returns a file system whose times and link counts come from a cache.
func remote() (testDir, *disktest.Memory) {
	at, m := inMemory()
	m.Without(disktest.Lacking{Local: true})
	return at, m
}

// What a cache says of the times and links of a file does not keep it from being committed.
func TestCommitWithCachedAttributes(t *testing.T) {
	for name, want := range copies {
		t.Run(name, func(t *testing.T) {
			at, m := remote()
			if want.Overwrite {
				at.put("file", oldText)
			}
			p := mustOpen(t, at, "file", want)
			must(t, write(t, p, newText))
			must(t, p.Flush(t.Context(), nil))
			meta := disk.Metadata{Size: int64(len(newText)), Mode: 0o600, UID: m.Self().UID}
			must(t, p.Prepare(t.Context(), meta, wire.DurabilityFull, nil))
			must(t, p.Commit(wire.DurabilityFull))
			at.mustContain(t, "file", newText)
			if open := m.Handles(); open != 0 {
				t.Errorf("%d handles are still open", open)
			}
		})
	}
}

// Another size is noticed there, too.
func TestPartialThatIsTamperedWithRemotely(t *testing.T) {
	for name, tamper := range tampering {
		t.Run(name, func(t *testing.T) {
			at, _ := remote()
			p := mustOpen(t, at, "file", copies["new"])
			must(t, receive(t, p, newText, wire.DurabilityFull))
			m := at.fs.(*disktest.Memory)
			m.Without(disktest.Lacking{}) // for the other process
			tamper(t, at)
			m.Without(disktest.Lacking{Local: true})
			mustFail(t, p.Commit(wire.DurabilityFull), disk.ErrChanged, "another process")
		})
	}
}
