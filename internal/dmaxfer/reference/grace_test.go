package reference

import (
	"testing"
	"time"

	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
)

// The idle timeout counts once more for each started 256 MiB of the file.
func TestGraceCountsStartedUnits(t *testing.T) {
	for size, want := range map[uint64]time.Duration{
		0: 1, 1: 2, graceUnit: 2, graceUnit + 1: 3, 10 * graceUnit: 11,
	} {
		tr := &Transfer{config: Config{IdleTimeout: time.Second}, agreement: protocol.Agreement{Size: size}}
		if got := tr.longGrace(); got != want*time.Second {
			t.Errorf("%d bytes: %s, want %s", size, got, want*time.Second)
		}
	}
}
