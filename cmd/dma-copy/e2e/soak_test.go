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

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

var soakCopies = flag.Int("soak.copies", 60, "how many copies TestSoak makes")

const (
	soakChunk = 64 << 10
	soakMost  = 3 << 20 // bytes of the largest of its files

	// memoryGrowth is what may become of the resident memory of a process that copies for ever: it settles, a little higher.
	memoryGrowth = 8 << 20
)

// TestSoak has both sides of many copies in this process, where all that they hold can be counted: small files and middle ones, in both
// directions and both protocols, one in four of them interrupted and made again. In the end the process holds what it held when it
// was warm, and the folders what they held then.
func TestSoak(t *testing.T) {
	needSoftwareDevice(t)
	s := newSoak(t)
	warm := max(16, *soakCopies/10)
	for range warm {
		s.copyOne()
	}
	before, goroutines, open := docatest.TakeInventory(t), runtime.NumGoroutine(), len(doca.OpenHandles())
	shared := namesIn(t, s.runtime)
	for range *soakCopies {
		s.copyOne()
		s.memory = append(s.memory, residentNow())
	}
	before.MustBeUnchanged(t)
	s.mustHaveGoroutines(goroutines)
	if now := len(doca.OpenHandles()); now != open {
		t.Errorf("%d objects of the device were open, and now %d are", open, now)
	}
	if now := namesIn(t, s.runtime); !slices.Equal(shared, now) {
		t.Errorf("the runtime directory held %q, and now it holds %q", shared, now)
	}
	s.mustNotHaveGrown()
}

type soak struct {
	t         *testing.T
	random    *rand.Rand
	runtime   string
	host, dpu dmaxfer.Options
	made      int
	memory    []uint64 // resident, after each copy
}

func newSoak(t *testing.T) *soak {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), runtime: t.TempDir()}
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: s.runtime})
	must(t, err)
	t.Cleanup(func() { must(t, driver.Close()) })
	both := dmaxfer.Options{
		Chunk: soakChunk, Depth: 4, Wait: time.Minute, IdleTimeout: time.Minute, Log: zerolog.Nop(),
		Digest: digest.CRC32C, Durability: negotiate.DurabilityFull,
		ExitCode: func(error) int { return exitFailure },
	}
	s.host, s.dpu = both, both
	s.host.Side, s.host.File = negotiate.Host, filepath.Join(t.TempDir(), "file")
	s.dpu.Side, s.dpu.File = negotiate.DPU, filepath.Join(t.TempDir(), "file")
	for name, device := range map[string]**doca.Device{"b1:00.1": &s.host.Device, "03:00.1": &s.dpu.Device} {
		opened, err := driver.OpenDevice(name)
		must(t, err)
		t.Cleanup(func() { must(t, opened.Close()) })
		*device = opened
	}
	s.dpu.Representor = "b1:00.1"
	return s
}

// copyOne makes one copy, of which some are interrupted before.
func (s *soak) copyOne() {
	s.t.Helper()
	sender, receiver := &s.host, &s.dpu
	if s.made%2 == 1 {
		sender, receiver = receiver, sender
	}
	content := make([]byte, s.size())
	_, _ = io.ReadFull(noise(fmt.Sprint(s.random.Uint64())), content) // never fails
	must(s.t, os.WriteFile(sender.File, content, 0o644))
	s.host.ReferenceOnly = s.made%8 == 2
	if s.made%4 == 3 {
		s.interrupt(receiver)
	}
	s.mustCopy(sender, receiver, content)
	s.made++
}

// size favours small files; some have pieces to spare.
func (s *soak) size() int {
	most := soakChunk
	if s.random.IntN(3) == 0 {
		most = soakMost
	}
	return s.random.IntN(most)
}

// interrupt ends one side soon; whether that is before the copy's end is left to chance.
func (s *soak) interrupt(receiver *dmaxfer.Options) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	timer := time.AfterFunc(time.Duration(s.random.IntN(20))*time.Millisecond, func() { cancel(errors.New("it was enough")) })
	defer timer.Stop()
	contexts := map[negotiate.Side]context.Context{negotiate.Host: s.t.Context(), negotiate.DPU: s.t.Context()}
	contexts[[]negotiate.Side{negotiate.Host, negotiate.DPU}[s.random.IntN(2)]] = ctx
	// Whoever is alone waits for nobody.
	s.host.Wait, s.dpu.Wait = 100*time.Millisecond, 100*time.Millisecond
	s.run(contexts)
	s.host.Wait, s.dpu.Wait = time.Minute, time.Minute
	_ = os.Remove(receiver.File) // if it was over before
}

// run has both sides run at once.
func (s *soak) run(contexts map[negotiate.Side]context.Context) map[negotiate.Side]error {
	type result struct {
		side negotiate.Side
		err  error
	}
	results := make(chan result, 2)
	for _, o := range []dmaxfer.Options{s.host, s.dpu} {
		go func() {
			_, err := dmaxfer.Run(contexts[o.Side], o)
			results <- result{o.Side, err}
		}()
	}
	errs := map[negotiate.Side]error{}
	for range 2 {
		r := <-results
		errs[r.side] = r.err
	}
	return errs
}

func (s *soak) mustCopy(sender, receiver *dmaxfer.Options, content []byte) {
	s.t.Helper()
	errs := s.run(map[negotiate.Side]context.Context{negotiate.Host: s.t.Context(), negotiate.DPU: s.t.Context()})
	must(s.t, errors.Join(errs[negotiate.Host], errs[negotiate.DPU]))
	got, err := os.ReadFile(receiver.File)
	must(s.t, err)
	if !bytes.Equal(got, content) {
		s.t.Fatalf("copy %d: %d bytes arrived that are not the %d sent", s.made, len(got), len(content))
	}
	mustHoldOnly(s.t, filepath.Dir(sender.File), "file")
	mustHoldOnly(s.t, filepath.Dir(receiver.File), "file")
	must(s.t, errors.Join(os.Remove(sender.File), os.Remove(receiver.File)))
}

// mustHaveGoroutines waits for those that have been told to end.
func (s *soak) mustHaveGoroutines(want int) {
	s.t.Helper()
	deadline := time.Now().Add(hangGuard)
	for runtime.NumGoroutine() > want && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > want {
		s.t.Errorf("there were %d goroutines, and now there are %d", want, now)
	}
}

// mustNotHaveGrown compares the middle one of the first copies with that of the last.
func (s *soak) mustNotHaveGrown() {
	s.t.Helper()
	if raceDetector {
		return // its own memory grows
	}
	part := max(1, len(s.memory)/5)
	first, last := median(s.memory[:part]), median(s.memory[len(s.memory)-part:])
	s.t.Logf("%d copies; resident memory %s, then %s", s.made, humanize.IBytes(first), humanize.IBytes(last))
	if last > first+memoryGrowth {
		s.t.Errorf("the resident memory has grown from %s to %s", humanize.IBytes(first), humanize.IBytes(last))
	}
}

func median(values []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// residentNow is the process's memory without what its garbage collector only keeps for later.
func residentNow() uint64 {
	debug.FreeOSMemory()
	return kilobytes("/proc/self/status", `VmRSS:\s+(\d+) kB`)
}

func namesIn(t *testing.T, folder string) []string {
	t.Helper()
	names, err := entries(folder, func(os.DirEntry) bool { return true })
	must(t, err)
	return names
}

// TestSoakOfProcesses makes copies with two processes each, a tenth as many: what they share, and the folders, hold in the end what they held
// after the first.
func TestSoakOfProcesses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	random := rand.New(rand.NewPCG(1, uint64(*soakCopies)))
	var shared []string
	for i := range max(2, *soakCopies/10) {
		sender := []string{"host", "dpu"}[i%2]
		s.put(sender, random.Int64N(soakMost))
		s.copyOnce("--chunk 64KiB --depth 4")
		s.same()
		for _, where := range []string{"host", "dpu"} {
			mustHoldOnly(t, filepath.Join(s.folder, where), "file")
			must(t, os.Remove(s.path(where)))
		}
		if i == 0 {
			shared = namesIn(t, filepath.Join(s.folder, runtimeFolder))
		}
	}
	if now := namesIn(t, filepath.Join(s.folder, runtimeFolder)); !slices.Equal(shared, now) {
		t.Errorf("the runtime directory held %q, and now it holds %q", shared, now)
	}
}
