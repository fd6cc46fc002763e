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
		info, err := at.fs.Stat(at.path("file"))
		must(t, err)
		if info.Changed.Sec != time.Now().Unix() {
			t.Errorf("the file was changed at %d", info.Changed.Sec)
		}
	})
}

// What has come of a slow stream is not kept back for what may follow, and a fast one's chunks are full.
func TestSlowStreamIsNotKeptBack(t *testing.T) {
	for pause, want := range map[time.Duration]int{time.Microsecond: 100, 40 * time.Millisecond: 3, time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			stirred := 0
			stream := disk.NewStream(oneByteReader{pause: pause}, func() { stirred++ })
			if n, err := stream.Next(make([]byte, 100)); n != want || stirred != want || err != nil {
				t.Errorf("with a byte in %s it gave %d bytes after %d reads, %v", pause, n, stirred, err)
			}
		})
	}
}

// dripping is a stream of single bytes.
type oneByteReader struct {
	disk.File
	pause time.Duration
}

func (d oneByteReader) Read([]byte) (int, error) {
	time.Sleep(d.pause)
	return 1, nil
}
