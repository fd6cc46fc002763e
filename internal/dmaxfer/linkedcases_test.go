//go:build cgo

package dmaxfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// mustRefuse expects both sides to end with a code and to say why, and the connection to remain.
func (l *linkedPair) mustRefuse(t *testing.T, sender wire.Side, want wire.AbortCode, text string) {
	t.Helper()
	both := l.copy(t.Context(), sender)
	for side, err := range both.errs {
		if exit.Code(err) != int(want) || !strings.Contains(err.Error(), text) {
			t.Errorf("the %s says %d: %v; want %d with %q", side, exit.Code(err), err, want, text)
		}
	}
}

// A target that exists is left alone, compared or replaced as the user wants, whichever side has it.
func TestLinkedTargetExists(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		jobtest.WriteFile(t, from.File, content(3*testChunk))
		jobtest.WriteFile(t, to.File, "something else")
		from.Overwrite = true // is for a side that receives
		l.mustRefuse(t, sender, wire.AbortSource, to.File+" exists and differs from")
		l.mustRefuse(t, sender, wire.AbortSource, "use --overwrite to replace it")
		jobtest.MustContain(t, to.File, "something else")
		to.Overwrite, to.Backup = true, true
		l.mustCopy(t, sender)
		jobtest.MustContain(t, to.File, content(3*testChunk))
		jobtest.MustContain(t, to.File+"~", "something else")
		to.Overwrite = false
		for side, is := range l.mustCopy(t, sender).summaries {
			if !is.UpToDate || is.Sent != (side == sender) {
				t.Errorf("a second copy is %+v on the %s", is, side)
			}
		}
		from.RefuseSame = true
		l.mustRefuse(t, sender, wire.AbortSource, "exists: use --overwrite")
	})
}

// A stream does not get the content of the file that it was meant to replace.
func TestLinkedStreams(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		memory, want, file := disktest.NewMemory("/", "/streams"), content(3*testChunk+1), to.File
		memory.Put("/streams/in", want)
		memory.Put("/streams/out", "")
		from.File, from.Stdin, to.Stdout = "-", memoryFile(memory, "/streams/in"), memoryFile(memory, "/streams/out")
		l.mustCopy(t, sender)
		jobtest.MustContain(t, file, want)
		l.mustRefuse(t, sender, wire.AbortSource, "exists: use --overwrite")
		to.File = "-"
		l.mustRefuse(t, sender, wire.AbortSource, "is sent as a stream")
		from.File = filepath.Join(t.TempDir(), "file")
		jobtest.WriteFile(t, from.File, want)
		l.mustCopy(t, sender)
		if got, _ := memory.Get("/streams/out"); got != want {
			t.Errorf("%d bytes were written to the stream, want %d", len(got), len(want))
		}
	})
}

// What cannot be copied ends that transfer on both sides, and the next one succeeds.
func TestLinkedRefuses(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		l.mustRefuse(t, sender, wire.AbortSource, from.File+" does not exist")
		must(t, os.Mkdir(from.File, 0o750))
		jobtest.WriteFile(t, to.File, "a file")
		l.mustRefuse(t, sender, wire.AbortTarget, "is a directory, and")
		to.File = filepath.Join(t.TempDir(), "missing", "file")
		l.mustRefuse(t, sender, wire.AbortTarget, to.File+" does not exist")
		to.File = filepath.Join(t.TempDir(), "file")
		l.mustCopy(t, sender)
		must(t, os.Remove(from.File))
		jobtest.WriteFile(t, from.File, "content")
		l.mustRefuse(t, sender, wire.AbortTarget, "is a directory, and")
	})
}

// The filter is that of the sender, also where the other side has the directory and does not replace anything.
func TestLinkedTree(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		must(t, os.Mkdir(from.File, 0o750))
		for name, content := range map[string]string{"a": "content", "b": "more", "skipped": "no"} {
			jobtest.WriteFile(t, filepath.Join(from.File, name), content)
		}
		filter, err := tree.NewFilter([]tree.Rule{{Pattern: "skipped"}})
		must(t, err)
		from.Filter = filter
		both := l.mustCopy(t, sender)
		jobtest.MustHold(t, to.File, "a", "b")
		if n := both.summaries[sender].Tree.Entries(); n != 3 {
			t.Errorf("%d entries were copied, want the directory and two files", n)
		}
		if both := l.mustCopy(t, sender); !both.summaries[sender].UpToDate {
			t.Errorf("a second copy is %+v", both.summaries[sender])
		}
		jobtest.WriteFile(t, filepath.Join(to.File, "b"), "diff")
		jobtest.WriteFile(t, filepath.Join(from.File, "c"), "added")
		for side, err := range l.copy(t.Context(), sender).errs {
			if !errors.Is(err, job.ErrSomeFailed) {
				t.Errorf("the %s says %v", side, err)
			}
		}
		jobtest.MustContain(t, filepath.Join(to.File, "b"), "diff")
		jobtest.MustContain(t, filepath.Join(to.File, "c"), "added")
		to.Overwrite = true
		l.mustCopy(t, sender)
		jobtest.MustContain(t, filepath.Join(to.File, "b"), "more")
	})
}

// A DPU that may not import the window goes on over producers and consumers, and begins the next transfer with them.
func TestLinkedLeavesDMA(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "refuse=doca_mmap_create_from_export:1:NOT_PERMITTED")
	bothWays(t, transport{choice: job.AnyPath, connect: connectDevice}, leavesPathOnce)
}

func leavesPathOnce(t *testing.T, l *linkedPair, sender wire.Side) {
	l.host.Log, l.dpu.Log = lenientLogs(t)
	from, to := l.files(sender)
	jobtest.WriteFile(t, from.File, content(3*testChunk))
	for range 2 {
		for side, is := range l.mustCopy(t, sender).summaries {
			if is.DataPath != wire.PathFast {
				t.Errorf("the %s has copied by %s", side, is.DataPath)
			}
		}
		jobtest.MustContain(t, to.File, content(3*testChunk))
		must(t, os.Remove(to.File))
	}
	if n := l.opened[wire.DPU].windows; n != 1 {
		t.Errorf("the DPU has opened %d windows", n)
	}
}

// A side that sends changes nothing, not even what an interrupted transfer has left beside its file.
func TestLinkedSourceIsLeftAlone(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		jobtest.WriteFile(t, from.File, "content")
		jobtest.WriteFile(t, to.File, "content")
		for _, end := range []string{"part", "journal"} {
			jobtest.WriteFile(t, filepath.Join(filepath.Dir(from.File), ".file.dma-copy-"+end), "left")
		}
		l.mustCopy(t, sender)
		jobtest.MustHold(t, filepath.Dir(from.File), ".file.dma-copy-journal", ".file.dma-copy-part", "file")
	})
}

// What a transfer has left in its window is not in that of another connection, all of which the peer can read.
func TestLinkedMemoryIsFresh(t *testing.T) {
	const word = "the secret of another connection"
	setup := newSetup(t, "")
	first, disconnect := setup.connect(t, transports["dma"])
	jobtest.WriteFile(t, setup.host.File, strings.Repeat(word, 4*testChunk/len(word)))
	first.mustCopy(t, wire.Host)
	if !bytes.Contains(first.hostWindow(t), []byte(word)) {
		t.Error("the window of the first connection does not have what was copied, so this shows nothing")
	}
	disconnect()
	jobtest.WriteFile(t, setup.host.File, "x")
	must(t, os.Remove(setup.dpu.File))
	second, disconnect := setup.connect(t, transports["dma"])
	defer disconnect()
	second.mustCopy(t, wire.Host)
	if found := bytes.ReplaceAll(second.hostWindow(t), []byte{0}, nil); string(found) != "x" {
		t.Errorf("the peer finds %d bytes", len(found))
	}
}

// hostWindow returns the window of a sending host as the DPU's engine reads it.
func (l *linkedPair) hostWindow(t *testing.T) []byte {
	t.Helper()
	exposed := l.opened[wire.Host].last
	length := int64(exposed.Slots.Count()) * testChunk
	remote, err := l.DPU.Import(exposed.Descriptor, exposed.Address, length)
	must(t, err)
	defer func() { must(t, remote.Close()) }()
	into, err := l.DPU.Alloc(length, doca.LocalWrite)
	must(t, err)
	defer func() { must(t, into.Close()) }()
	engine, err := l.DPU.NewEngine(1)
	must(t, err)
	defer func() { must(t, engine.Close()) }()
	_, err = engine.Submit([]doca.Copy{{Source: remote, Target: into, Length: length}})
	must(t, err)
	var ended [1]doca.Completion
	_, err = engine.Reap(t.Context(), ended[:])
	must(t, err)
	must(t, ended[0].Err)
	return bytes.Clone(into.Bytes())
}

// The engines copy as many bytes as the records announce, and none of what is beside them in the window.
func TestLinkedCopiesOnlyWhatIsAnnounced(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		for _, size := range []int{3 * testChunk, 1, testChunk + 7} {
			before := l.moved()
			jobtest.WriteFile(t, from.File, content(size))
			_ = os.Remove(to.File)
			l.mustCopy(t, sender)
			if moved := l.moved() - before; moved != int64(size) {
				t.Errorf("%d bytes were copied for a file of %d", moved, size)
			}
		}
	})
}

// moved returns how many bytes the engines have copied: those of one side, or of both where one sends to the other.
func (l *linkedPair) moved() int64 {
	return max(l.opened[wire.Host].moved.Load(), l.opened[wire.DPU].moved.Load())
}

// Two hundred transfers leave what one does: memory, descriptors, goroutines and objects of the device.
func TestLinkedKeepsNothing(t *testing.T) {
	for name, over := range transports {
		t.Run(name, func(t *testing.T) {
			l := newLinkedPair(t, over)
			l.host.Durability, l.dpu.Durability = wire.DurabilityNone, wire.DurabilityNone
			l.host.Log, l.dpu.Log = lenientLogs(t)
			jobtest.WriteFile(t, l.host.File, content(6*testChunk)) // for all lanes
			var before resources
			for n := range 100 {
				l.mustCopy(t, wire.Host)
				must(t, os.Remove(l.dpu.File))
				if n == 25 {
					before = resourcesNow(t)
				}
			}
			after := resourcesNow(t)
			for deadline := time.Now().Add(30 * time.Second); after.exceed(before) && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond) // goroutines that are about to end
				after = resourcesNow(t)
			}
			if after.exceed(before) {
				t.Errorf("%+v after 25 transfers, %+v after 100", before, after)
			}
			for side, m := range l.opened {
				if m.windows != 1 {
					t.Errorf("the %s has opened %d windows", wire.Side(side), m.windows)
				}
			}
		})
	}
}

// A connection that pushes and pulls alternately opens another window for each transfer.
func TestLinkedTransfersAlternate(t *testing.T) {
	eachTransport(t, func(t *testing.T, over transport) { alternate(t, newLinkedPair(t, over)) })
}

func alternate(t *testing.T, l *linkedPair) {
	for range 3 {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			from, to := l.files(sender)
			jobtest.WriteFile(t, from.File, content(3*testChunk))
			l.mustCopy(t, sender)
			jobtest.MustContain(t, to.File, content(3*testChunk))
			must(t, errors.Join(os.Remove(to.File), os.Remove(from.File)))
		}
	}
	for side, m := range l.opened {
		if m.windows != 6 {
			t.Errorf("the %s has opened %d windows", wire.Side(side), m.windows)
		}
	}
}

// resources are what a process may use up.
type resources struct {
	handles, files, goroutines int
	heap                       uint64 // bytes
}

// exceed reports whether they are more than earlier ones, apart from what the runtime does by itself.
func (r resources) exceed(earlier resources) bool {
	return r.handles != earlier.handles || r.files > earlier.files+2 ||
		r.goroutines > earlier.goroutines+2 || r.heap > earlier.heap+1<<20
}

func resourcesNow(t *testing.T) resources {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return resources{len(doca.OpenHandles()), len(files), runtime.NumGoroutine(), memory.HeapAlloc}
}

// Close while a transfer uses the memory leaves it alone, and the transfer releases it.
func TestLinkedMemoryClosedInUse(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		want := content(40 * testChunk)
		jobtest.WriteFile(t, from.File, want)
		handles := len(doca.OpenHandles())
		for _, o := range []*Options{from, to} {
			o.Notify = func(e job.Event) {
				if _, is := e.(job.Planned); is {
					_ = l.memory[o.Side].Close() // fails: the window is in use
				}
			}
		}
		both := l.copy(context.Background(), sender)
		for side, err := range both.errs {
			if err != nil {
				t.Errorf("the %s: %v", side, err)
			}
			must(t, l.memory[side].Close())
		}
		jobtest.MustContain(t, to.File, want)
		if n := len(doca.OpenHandles()); n != handles {
			t.Errorf("%d objects of the device are open, %d were before", n, handles)
		}
	})
}
