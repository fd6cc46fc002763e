package disk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// A copy in memory waits for nothing outside of its bubble, and keeps its time.
func TestMemoryRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, m := inMemory()
		p, err := disk.OpenPartial(at.fs, at.path("file"), copies["new"])
		must(t, err)
		started := time.Now()
		_, err = disk.OpenPartial(at.fs, at.path("file"), copies["new"])
		mustFail(t, err, disk.ErrBusy)
		if time.Since(started) == 0 {
			t.Error("whoever finds the lock taken does not wait for it at all")
		}
		p.Discard()
		must(t, copyAll(t, m, copies["new"], (*disk.Partial).Discard))
		_, info, err := at.fs.Resolve(at.path("file"))
		must(t, err)
		if info.Changed.Sec != time.Now().Unix() {
			t.Errorf("the file was changed at %d", info.Changed.Sec)
		}
	})
}
