package reference

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A message that was received before the copy began, as Resume may be given one, ends it like one that arrives.
func TestEarlyMessageEndsTheCopy(t *testing.T) {
	_, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	transfer := New(Config{Side: wire.DPU, Conn: dpu, File: &job.LocalFile{}})
	transfer.early = protocol.Status{}.Encode()
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	copying, cancel := context.WithCancelCause(waiting)
	transfer.listen(copying, cancel)
	if err := context.Cause(copying); !errors.Is(err, errUnexpected) || transfer.early == nil {
		t.Errorf("the copy ends with %v, want %v", err, errUnexpected)
	}
}
