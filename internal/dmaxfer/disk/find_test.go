package disk_test

import (
	"io/fs"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

func TestPartialsAreFound(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		interrupt(t, at, 8192)
		at.put(".strange.dma-copy-part", "xyz")
		at.put("file.dma-copy-part", "no partial: not hidden")
		p := mustOpen(t, at, "running", wanted(5))
		before := at.names(t)
		found, err := disk.FindPartials(at.fs, at.folder)
		must(t, err)
		at.mustHold(t, before...)
		for i := range found {
			if found[i].Modified == (disk.Timestamp{}) {
				t.Errorf("%s has no time", found[i].Name)
			}
			found[i].Modified = disk.Timestamp{}
		}
		want := []disk.Leftover{
			{Name: partialName, Journal: journalName, Size: 8192, Total: int64(len(newText)), Prefix: 8192},
			{Name: ".running.dma-copy-part", Journal: ".running.dma-copy-journal", Total: 5, InUse: true},
			{Name: ".strange.dma-copy-part", Size: 3},
		}
		if len(found) != 3 || found[0] != want[0] || found[1] != want[1] || found[2] != want[2] {
			t.Errorf("found %+v, not %+v", found, want)
		}
		p.Discard()
		_, err = disk.FindPartials(at.fs, at.path("absent"))
		mustBe(t, err, fs.ErrNotExist)
	})
}
