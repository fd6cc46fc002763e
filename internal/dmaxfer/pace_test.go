//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
)

// A deadline that is too near for the bandwidth counts when it comes, by its own name.
func TestRunPacedWithinADeadline(t *testing.T) {
	late := errors.New("too late")
	setup := newSetup(t, "")
	setup.host.Bandwidth = 1
	jobtest.WriteFile(t, setup.host.File, content(2*testChunk))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
	defer cancel()
	receiver := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), setup.dpu)
		receiver <- err
	}()
	_, err := Run(ctx, setup.host)
	mustBe(t, err, late)
	if err := <-receiver; err == nil {
		t.Error("the receiver has the file")
	}
}
