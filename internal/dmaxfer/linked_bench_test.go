//go:build cgo

package dmaxfer

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// BenchmarkLinked transfers a file again and again over one connection, with both sides in this process, and compares
// with cp: "vs-cp" is how many times as fast it is. LINKED_DIR names the directory of the files, and LINKED_TRANSPORT
// one of transports.
func BenchmarkLinked(b *testing.B) {
	for _, size := range []int{4 << 10, 2 << 20, 64 << 20} {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			b.Run(fmt.Sprintf("size=%dKiB/from=%s", size>>10, sender), func(b *testing.B) {
				benchLinked(b, size, sender)
			})
		}
	}
}

// BenchmarkLinkedTree is BenchmarkLinked for a directory of small files.
func BenchmarkLinkedTree(b *testing.B) {
	const files = 10_000
	for _, sender := range []wire.Side{wire.Host, wire.DPU} {
		b.Run(fmt.Sprintf("files=%d/from=%s", files, sender), func(b *testing.B) {
			l := newBenchedPair(b)
			from, _ := l.files(sender)
			mustMove(b, os.Mkdir(from.File, 0o700))
			for i := range files {
				name := filepath.Join(from.File, fmt.Sprintf("file%05d", i))
				mustMove(b, os.WriteFile(name, []byte(content(1<<10)), 0o600))
			}
			copyRepeatedly(b, l, sender)
		})
	}
}

func benchLinked(b *testing.B, size int, sender wire.Side) {
	l := newBenchedPair(b)
	from, _ := l.files(sender)
	mustMove(b, os.WriteFile(from.File, []byte(content(size)), 0o600))
	b.SetBytes(int64(size))
	copyRepeatedly(b, l, sender)
}

func copyRepeatedly(b *testing.B, l *linkedPair, sender wire.Side) {
	b.Helper()
	from, to := l.files(sender)
	l.mustCopy(b, sender)
	mustMove(b, os.RemoveAll(to.File))
	other := filepath.Join(filepath.Dir(to.File), "cp")
	var copied, cpu time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		before := cpuTime(b)
		l.mustCopy(b, sender)
		cpu += cpuTime(b) - before
		b.StopTimer()
		began := time.Now()
		mustMove(b, exec.Command("cp", "-r", from.File, other).Run())
		copied += time.Since(began)
		mustMove(b, os.RemoveAll(other))
		mustMove(b, os.RemoveAll(to.File))
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(copied)/float64(b.Elapsed()), "vs-cp")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/op")
}

// cpuTime returns how long this process has computed: unlike the time of the day it does not depend on others.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	mustMove(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func newBenchedPair(b *testing.B) *linkedPair {
	b.Helper()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: b.TempDir()})
	mustMove(b, err)
	b.Cleanup(func() { mustMove(b, driver.Close()) })
	both := Options{
		Options: role.Options{
			IdleTimeout: time.Minute, Log: zerolog.Nop(), Digest: digest.CRC32C, Durability: wire.DurabilityNone,
		},
		Wait: time.Minute,
	}
	fmt.Sscan(os.Getenv("LINKED_CHUNK"), &both.Chunk, &both.Depth)
	s := &setup{host: both, dpu: both}
	s.host.Side, s.host.Device = wire.Host, openBenched(b, driver, "b1:00.1")
	s.dpu.Side, s.dpu.Device = wire.DPU, openBenched(b, driver, "03:00.1")
	s.dpu.Representor = "b1:00.1"
	for _, o := range []*Options{&s.host, &s.dpu} {
		dir, err := os.MkdirTemp(os.Getenv("LINKED_DIR"), "linked")
		mustMove(b, err)
		b.Cleanup(func() { mustMove(b, os.RemoveAll(dir)) })
		o.File = filepath.Join(dir, "file")
	}
	over, known := transports[cmp.Or(os.Getenv("LINKED_TRANSPORT"), "dma")]
	if !known {
		b.Fatalf("LINKED_TRANSPORT is none of %q", slices.Sorted(maps.Keys(transports)))
	}
	s.host.Path, s.dpu.Path = over.choice, over.choice
	l, disconnect := s.connect(b, over)
	b.Cleanup(disconnect)
	return l
}
