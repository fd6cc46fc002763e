//go:build cgo

package dmaxfer

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
)

var corruptions = flag.Int("corruptions", fewCorruptions, "how many chunks TestNoWrongByteIsKept corrupts")

// corruptionsAtOnce is how many of them one copy has, which is what the device takes, one somewhere in every
// corruptedRun chunks.
const (
	corruptionsAtOnce = 30
	corruptedRun      = 8
)

// TestNoWrongByteIsKept lets the software device flip bits, drop bytes and duplicate some, in any chunk.
func TestNoWrongByteIsKept(t *testing.T) {
	noWrongByteIsKept(t, *corruptions, (*setup).corrupted)
}

// The same holds for small files, of which several are in one chunk.
func TestNoWrongByteOfATreeIsKept(t *testing.T) {
	noWrongByteIsKept(t, *corruptions/4, (*setup).corruptedTree)
}

// noWrongByteIsKept has copies with corruptions, of which each returns how many were noticed.
func noWrongByteIsKept(
	t *testing.T, corruptions int, run func(s *setup, t *testing.T, sender, receiver *Options, faults string) int64,
) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(corruptions), 5))
	noticed := int64(0)
	hostLog, dpuLog := lenientLogs(t)
	for done := 0; done < corruptions; done += corruptionsAtOnce {
		faults := corruptingFaults(random)
		t.Setenv("DMA_COPY_SOFT_FAULTS", faults)
		setup := newSetup(t, "")
		setup.host.Log, setup.dpu.Log = hostLog, dpuLog
		way := setup.directions()[[]string{"from the host", "from the DPU"}[done/corruptionsAtOnce%2]]
		noticed += run(setup, t, way[0], way[1], faults)
		setup.closeEarly(t)
		if t.Failed() {
			return
		}
	}
	if noticed < int64(corruptions)*9/10 {
		t.Errorf("only %d of %d corruptions were noticed, and yet every byte is right", noticed, corruptions)
	}
}

// corruptingFaults never corrupts a chunk so often that the transfer ends.
func corruptingFaults(random *rand.Rand) string {
	faults := []string{fmt.Sprint("seed=", random.Uint32())}
	for i := range corruptionsAtOnce {
		chunk := i*corruptedRun + random.IntN(corruptedRun) + 1
		faults = append(faults, fmt.Sprintf("%s=%d", pick(random, "flip", "drop", "duplicate"), chunk))
	}
	return strings.Join(faults, ",")
}

// corrupted returns how many chunks were retransmitted.
func (s *setup) corrupted(t *testing.T, sender, receiver *Options, faults string) int64 {
	t.Helper()
	want := content(corruptionsAtOnce * corruptedRun * testChunk)
	jobtest.WriteFile(t, sender.File, want)
	both := s.run(t.Context())
	for side, err := range both.errs {
		if err != nil {
			t.Fatalf("the %s failed with faults %s: %v", side, faults, err)
		}
	}
	jobtest.MustContain(t, receiver.File, want)
	must(t, os.Remove(sender.File))
	must(t, os.Remove(receiver.File))
	return both.summaries[sender.Side].Retries
}

// corruptedTree copies small files, of which one or two fit into a chunk. It returns how many chunks were
// retransmitted.
func (s *setup) corruptedTree(t *testing.T, sender, receiver *Options, faults string) int64 {
	t.Helper()
	const files = 2 * corruptionsAtOnce * corruptedRun
	all := content(files * testChunk)
	contentOf := func(i int) string { return all[i*testChunk : i*testChunk+testChunk/3+i%(testChunk/2)] }
	must(t, os.Mkdir(sender.File, 0o755))
	for i := range files {
		jobtest.WriteFile(t, filepath.Join(sender.File, fmt.Sprint(i)), contentOf(i))
	}
	both := s.run(t.Context())
	for side, err := range both.errs {
		if err != nil {
			t.Fatalf("the %s failed with faults %s: %v", side, faults, err)
		}
	}
	for i := range files {
		jobtest.MustContain(t, filepath.Join(receiver.File, fmt.Sprint(i)), contentOf(i))
	}
	jobtest.MustHold(t, filepath.Dir(receiver.File), "file")
	must(t, os.RemoveAll(sender.File))
	must(t, os.RemoveAll(receiver.File))
	return both.summaries[sender.Side].Retries
}

// Without a digest corruption is not noticed, and the summary reports that nothing was verified.
func TestWithoutADigestNothingIsNoticed(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "flip=2")
	setup := newSetup(t, "")
	setup.host.Digest, setup.dpu.Digest = digest.None, digest.None
	want := content(3 * testChunk)
	jobtest.WriteFile(t, setup.host.File, want)
	both := setup.run(t.Context())
	for side, err := range both.errs {
		must(t, err)
		if both.summaries[side].Sum.Algorithm() != digest.None {
			t.Errorf("%+v claims to have verified something", both.summaries[side])
		}
	}
	got, err := os.ReadFile(setup.dpu.File)
	must(t, err)
	if string(got) == want {
		t.Error("the device did not corrupt anything")
	}
}
