//go:build cgo

package dmaxfer

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

var corruptions = flag.Int("corruptions", 600, "how many pieces TestNoWrongByteIsKept lets arrive changed")

// corruptionsAtOnce is how many of them one copy has, which is what the device takes, one somewhere in every
// corruptedRun pieces.
const (
	corruptionsAtOnce = 30
	corruptedRun      = 8
)

// TestNoWrongByteIsKept lets the software device flip bits, leave bytes out and write some twice, in whatever piece.
func TestNoWrongByteIsKept(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(*corruptions), 5))
	noticed := int64(0)
	for done := 0; done < *corruptions; done += corruptionsAtOnce {
		faults := corruptingFaults(random)
		t.Setenv("DMA_COPY_SOFT_FAULTS", faults)
		stand := newStand(t, "")
		stand.host.Log, stand.dpu.Log = zerolog.Nop(), zerolog.Nop()
		way := stand.directions()[[]string{"from the host", "from the DPU"}[done/corruptionsAtOnce%2]]
		noticed += stand.corrupted(t, way[0], way[1], faults)
		stand.closeEarly(t)
		if t.Failed() {
			return
		}
	}
	if noticed < int64(*corruptions)*9/10 {
		t.Errorf("only %d of %d corruptions were noticed, and yet every byte is right", noticed, *corruptions)
	}
}

// corruptingFaults lets no piece be hit as often as ends a copy.
func corruptingFaults(random *rand.Rand) string {
	faults := []string{fmt.Sprint("seed=", random.Uint32())}
	for i := range corruptionsAtOnce {
		piece := i*corruptedRun + random.IntN(corruptedRun) + 1
		faults = append(faults, fmt.Sprintf("%s=%d", pick(random, "flip", "drop", "duplicate"), piece))
	}
	return strings.Join(faults, ",")
}

// corrupted returns how many pieces were sent again.
func (s *stand) corrupted(t *testing.T, sender, receiver *Options, faults string) int64 {
	t.Helper()
	want := content(corruptionsAtOnce * corruptedRun * testChunk)
	writeFile(t, sender.File, want)
	both := s.run(t.Context())
	for side, err := range both.errs {
		if err != nil {
			t.Fatalf("the %s failed with faults %s: %v", side, faults, err)
		}
	}
	mustContain(t, receiver.File, want)
	must(t, os.Remove(sender.File))
	must(t, os.Remove(receiver.File))
	return both.summaries[sender.Side].Retries
}

// Whoever asks for no digest gets what the device makes of the file, and is told that nothing was verified.
func TestWithoutADigestNothingIsNoticed(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "flip=2")
	stand := newStand(t, "")
	stand.host.Digest, stand.dpu.Digest = digest.None, digest.None
	want := content(3 * testChunk)
	writeFile(t, stand.host.File, want)
	both := stand.run(t.Context())
	for side, err := range both.errs {
		must(t, err)
		if both.summaries[side].Sum.Algorithm() != digest.None {
			t.Errorf("%+v claims to have verified something", both.summaries[side])
		}
	}
	got, err := os.ReadFile(stand.dpu.File)
	must(t, err)
	if string(got) == want {
		t.Error("the device did not corrupt anything")
	}
}
