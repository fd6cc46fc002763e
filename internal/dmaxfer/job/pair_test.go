package job_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestPairDiffers(t *testing.T) {
	err := job.Pair{Source: "here", Target: "there"}.Differ()
	const want = "there exists and differs from here: use --overwrite to replace it, or name another target"
	if err.Error() != want || !errors.Is(err, wire.ErrBothHaveFile) {
		t.Errorf("%v", err)
	}
}
