//go:build cgo

package dmaxfer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// instantFS has files whose bytes cost nothing to read and write, since none is looked at.
type instantFS struct{ disk.FS }

func (f instantFS) Open(path string) (disk.File, error) { return instant(f.FS.Open(path)) }

func (f instantFS) OpenDir(path string) (disk.Dir, error) {
	dir, err := f.FS.OpenDir(path)
	return instantDir{dir}, err
}

type instantDir struct{ disk.Dir }

func (d instantDir) Create(name string) (disk.File, error) { return instant(d.Dir.Create(name)) }

func (d instantDir) CreateUnnamed(shown string, permissions uint32, early bool) (disk.File, error) {
	return instant(d.Dir.CreateUnnamed(shown, permissions, early))
}

func (d instantDir) GiveName(file disk.File, name string) error {
	if made, is := file.(instantFile); is {
		file = made.File
	}
	return d.Dir.GiveName(file, name)
}

type instantFile struct{ disk.File }

func instant(file disk.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return instantFile{file}, nil
}

func (f instantFile) ReadAt(p []byte, offset int64) (int, error) {
	info, err := f.File.Info()
	if err != nil {
		return 0, err
	}
	if left := info.Size - offset; left < int64(len(p)) {
		return int(max(left, 0)), io.EOF
	}
	return len(p), nil
}

func (instantFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Allocate has nothing to do: the file has its size already.
func (instantFile) Allocate(int64, int64) error { return nil }

// Free is not known: a file without bytes fits anywhere.
func (instantFile) Free() (uint64, bool) { return 0, false }

// Info says that there are no holes.
func (f instantFile) Info() (disk.Info, error) {
	info, err := f.File.Info()
	info.Allocated = info.Size
	return info, err
}

// protocolCuts are what is chosen for this processor's copies and for a distant engine, and some around.
var protocolCuts = []shape{{512 << 10, 16}, {512 << 10, 64}, {1 << 20, 16}, {1 << 20, 32}, {2 << 20, 32}}

// shape is how a file is cut.
type shape struct {
	chunk int64 // bytes
	depth int   // chunks in flight
}

// BenchmarkProtocol transfers b.N chunks with the whole program below the command line: both sides' sessions, lanes and
// digests, over the software device's channel and engines. What takes no time is what is not this program's: the
// files, the digest, and the engine, which moves no bytes, but takes the time of the model where there is one. GB/s is
// then what the slowest of our own stages, or the model, allows.
func BenchmarkProtocol(b *testing.B) {
	for name, limits := range map[string]string{"instant": "move_bytes=0", "400g": "model=400g,move_bytes=0"} {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			for _, cut := range protocolCuts {
				name := fmt.Sprintf("%s/from=%s/chunk=%dKiB/depth=%d", name, sender, cut.chunk>>10, cut.depth)
				b.Run(name, func(b *testing.B) { benchProtocol(b, limits, sender, cut) })
			}
		}
	}
}

func mustMove(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func benchProtocol(b *testing.B, limits string, sender wire.Side, cut shape) {
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: b.TempDir(), SoftLimits: limits})
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, driver.Close()) })
	sides := [2]Options{
		wire.Host: {Device: openBenched(b, driver, "b1:00.1")},
		wire.DPU:  {Device: openBenched(b, driver, "03:00.1"), Representor: "b1:00.1"},
	}
	for side := range sides {
		o := &sides[side]
		o.Side = wire.Side(side)
		o.File, o.FS, o.Log = filepath.Join(b.TempDir(), "file"), instantFS{disk.OS}, zerolog.Nop()
		o.Wait, o.IdleTimeout = time.Minute, time.Minute
		o.Chunk, o.Depth, o.NoResume = cut.chunk, cut.depth, true
		o.Digest, o.Durability = digest.None, wire.DurabilityNone
	}
	size := int64(b.N) * cut.chunk
	mustMove(b, os.WriteFile(sides[sender].File, nil, 0o600))
	mustMove(b, os.Truncate(sides[sender].File, size))
	b.SetBytes(cut.chunk)
	b.ReportAllocs()
	b.ResetTimer()
	messages := runBoth(b, sides)
	b.ReportMetric(float64(messages)/(float64(size)/(1<<30)), "messages/GiB")
	b.ReportMetric(float64(size)/float64(b.Elapsed()), "GB/s")
}

func openBenched(b *testing.B, driver *doca.Driver, address string) *doca.Device {
	b.Helper()
	device, err := driver.OpenDevice(address)
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, device.Close()) })
	return device
}

// runBoth returns how many messages there were.
func runBoth(b *testing.B, sides [2]Options) int64 {
	b.Helper()
	type outcome struct {
		job.Summary
		error
	}
	results := make(chan outcome, len(sides))
	for _, o := range sides {
		go func() {
			summary, err := Run(context.Background(), o)
			results <- outcome{summary, err}
		}()
	}
	var messages int64
	for range sides {
		o := <-results
		mustMove(b, o.error)
		messages += o.Messages
	}
	return messages
}
