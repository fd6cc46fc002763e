package disk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// A transfer in memory blocks durably for testing/synctest and uses its clock.
func TestMemoryRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, m := inMemory()
		p, err := disk.OpenPartial(at.fs, at.path("file"), copies["new"])
		must(t, err)
		started := time.Now()
		_, err = disk.OpenPartial(at.fs, at.path("file"), copies["new"])
		mustFail(t, err, disk.ErrBusy)
		if time.Since(started) == 0 {
			t.Error("OpenPartial does not wait for the lock")
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

// Bytes of a slow stream are returned after a pause, and chunks of a fast one are full.
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

// oneByteReader is a stream that returns one byte at a time.
type oneByteReader struct {
	disk.File
	pause time.Duration
}

func (d oneByteReader) Read([]byte) (int, error) {
	time.Sleep(d.pause)
	return 1, nil
}

// A process that has been killed keeps the lock of its target until it has freed its memory. The next one waits for
// that.
func TestLockOfAKilledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, m := inMemory()
		killed, err := disk.OpenPartial(at.fs, at.path("file"), copies["new"])
		must(t, err)
		time.AfterFunc(900*time.Millisecond, func() { killed.Keep() })
		must(t, copyAll(t, m, copies["new"], (*disk.Partial).Discard))
	})
}
