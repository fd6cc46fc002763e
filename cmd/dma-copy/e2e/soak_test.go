package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

var soakCopies = flag.Int("soak.copies", 60, "how many transfers TestSoak runs")

const (
	soakChunk = 64 << 10
	soakSize  = 3 << 20 // bytes of the largest file

	// memoryGrowth is how much the resident memory of a long-running process may grow before it stays constant.
	memoryGrowth = 8 << 20
)

// TestSoak runs both sides of many transfers in this process, where all their resources can be counted: small and
// larger files, in both directions and both protocols, one in four of them interrupted and repeated. At the end the
// process and the directories hold what they held after the first transfers.
func TestSoak(t *testing.T) {
	requireSoftwareDevice(t)
	s := newSoak(t)
	for range max(16, *soakCopies/10) {
		s.transfer()
	}
	before, goroutines, open := docatest.TakeInventory(t), runtime.NumGoroutine(), len(doca.OpenHandles())
	names := namesIn(t, s.runtime)
	for range *soakCopies {
		s.transfer()
		s.memory = append(s.memory, residentNow())
	}
	before.MustBeUnchanged(t)
	s.expectGoroutines(goroutines)
	if now := len(doca.OpenHandles()); now != open {
		t.Errorf("%d objects of the device were open, and now %d", open, now)
	}
	if now := namesIn(t, s.runtime); !slices.Equal(names, now) {
		t.Errorf("the runtime directory contained %q, and now %q", names, now)
	}
	s.checkMemory()
}

type soak struct {
	t         *testing.T
	random    *rand.Rand
	runtime   string
	host, dpu dmaxfer.Options
	transfers int
	memory    []uint64 // resident, after each transfer
}

func newSoak(t *testing.T) *soak {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), runtime: t.TempDir()}
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: s.runtime})
	must(t, err)
	t.Cleanup(func() { must(t, driver.Close()) })
	both := dmaxfer.Options{
		Options: role.Options{
			Chunk: soakChunk, Depth: 4, IdleTimeout: time.Minute, Log: zerolog.Nop(), Digest: digest.CRC32C,
			Durability: wire.DurabilityFull,
		},
		Wait: time.Minute,
	}
	s.host, s.dpu = both, both
	s.host.Side, s.host.File = wire.Host, filepath.Join(t.TempDir(), "file")
	s.dpu.Side, s.dpu.File = wire.DPU, filepath.Join(t.TempDir(), "file")
	s.host.Device = openDevice(t, driver, "b1:00.1")
	s.dpu.Device = openDevice(t, driver, "03:00.1")
	s.dpu.Representor = "b1:00.1"
	return s
}

func openDevice(t *testing.T, driver *doca.Driver, name string) *doca.Device {
	t.Helper()
	device, err := driver.OpenDevice(name)
	must(t, err)
	t.Cleanup(func() { must(t, device.Close()) })
	return device
}

// transfer copies one file. Every fourth transfer is first interrupted.
func (s *soak) transfer() {
	s.t.Helper()
	sender, receiver := &s.host, &s.dpu
	if s.transfers%2 == 1 {
		sender, receiver = receiver, sender
	}
	content := make([]byte, s.size())
	_, _ = io.ReadFull(randomStream(fmt.Sprint(s.random.Uint64())), content) // never fails
	must(s.t, os.WriteFile(sender.File, content, 0o644))
	s.host.ReferenceOnly = s.transfers%8 == 2
	if s.transfers%4 == 3 {
		s.interrupt(receiver)
	}
	s.expectTransfer(sender, receiver, content)
	s.transfers++
}

// size returns a random size: of three files two have at most one chunk.
func (s *soak) size() int {
	if s.random.IntN(3) == 0 {
		return s.random.IntN(soakSize)
	}
	return s.random.IntN(soakChunk)
}

// interrupt cancels one side after a random time, which may be after the end of the transfer.
func (s *soak) interrupt(receiver *dmaxfer.Options) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	delay := time.Duration(s.random.IntN(20)) * time.Millisecond
	timer := time.AfterFunc(delay, func() { cancel(errors.New("cancelled by the test")) })
	defer timer.Stop()
	contexts := map[wire.Side]context.Context{wire.Host: s.t.Context(), wire.DPU: s.t.Context()}
	cancelled := wire.Host
	if s.random.IntN(2) == 1 {
		cancelled = wire.DPU
	}
	contexts[cancelled] = ctx
	// A side whose peer was cancelled before they met does not wait for long.
	s.host.Wait, s.dpu.Wait = 100*time.Millisecond, 100*time.Millisecond
	s.run(contexts)
	s.host.Wait, s.dpu.Wait = time.Minute, time.Minute
	_ = os.Remove(receiver.File) // the transfer may have been complete
}

// run runs both sides at once.
func (s *soak) run(contexts map[wire.Side]context.Context) map[wire.Side]error {
	type result struct {
		side wire.Side
		err  error
	}
	results := make(chan result, 2)
	for _, o := range []dmaxfer.Options{s.host, s.dpu} {
		go func() {
			_, err := dmaxfer.Run(contexts[o.Side], o)
			results <- result{o.Side, err}
		}()
	}
	errs := map[wire.Side]error{}
	for range 2 {
		r := <-results
		errs[r.side] = r.err
	}
	return errs
}

func (s *soak) expectTransfer(sender, receiver *dmaxfer.Options, content []byte) {
	s.t.Helper()
	errs := s.run(map[wire.Side]context.Context{wire.Host: s.t.Context(), wire.DPU: s.t.Context()})
	must(s.t, errors.Join(errs[wire.Host], errs[wire.DPU]))
	got, err := os.ReadFile(receiver.File)
	must(s.t, err)
	if !bytes.Equal(got, content) {
		s.t.Fatalf("transfer %d: the %d bytes received differ from the %d sent", s.transfers, len(got), len(content))
	}
	expectOnly(s.t, filepath.Dir(sender.File), "file")
	expectOnly(s.t, filepath.Dir(receiver.File), "file")
	must(s.t, errors.Join(os.Remove(sender.File), os.Remove(receiver.File)))
}

// expectGoroutines waits until no more goroutines than before are left.
func (s *soak) expectGoroutines(want int) {
	s.t.Helper()
	deadline := time.Now().Add(processTimeout)
	for runtime.NumGoroutine() > want && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > want {
		s.t.Errorf("there were %d goroutines, and now %d", want, now)
	}
}

// checkMemory compares the median memory of the first transfers with that of the last.
func (s *soak) checkMemory() {
	s.t.Helper()
	if raceDetector {
		return // the race detector's own memory grows
	}
	fifth := max(1, len(s.memory)/5)
	first, last := median(s.memory[:fifth]), median(s.memory[len(s.memory)-fifth:])
	s.t.Logf("%d transfers; resident memory %s, then %s", s.transfers, quantity.Bytes(first), quantity.Bytes(last))
	if last > first+memoryGrowth {
		s.t.Errorf("the resident memory has grown from %s to %s", quantity.Bytes(first), quantity.Bytes(last))
	}
}

func median(values []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// residentNow returns the resident memory of this process after unused memory has been returned to the system.
func residentNow() uint64 {
	debug.FreeOSMemory()
	return kibibytes("/proc/self/status", `VmRSS:\s+(\d+) kB`)
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filesIn(dir, func(os.DirEntry) bool { return true })
	must(t, err)
	return names
}

// TestSoakOfProcesses runs a tenth as many transfers with two processes each. At the end the runtime directory and
// those of the sides contain what they did after the first.
func TestSoakOfProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	runtime := filepath.Join(f.dir, runtimeDir)
	random := rand.New(rand.NewPCG(1, uint64(*soakCopies)))
	var names []string
	for i := range max(2, *soakCopies/10) {
		f.createFile(bothSides[i%2], random.Int64N(soakSize))
		f.expectTransfer("--chunk 64KiB --depth 4")
		f.expectSameFiles()
		for _, side := range bothSides {
			expectOnly(t, filepath.Join(f.dir, side), "file")
			must(t, os.Remove(f.path(side)))
		}
		if i == 0 {
			names = namesIn(t, runtime)
		}
	}
	if now := namesIn(t, runtime); !slices.Equal(names, now) {
		t.Errorf("the runtime directory contained %q, and now %q", names, now)
	}
}
