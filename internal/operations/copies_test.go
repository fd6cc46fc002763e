package operations

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// The time of --max-duration starts when both sides know each other, however long one has waited for the other.
func TestMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3 * time.Second
		var began time.Time
		monitor := report.NewMonitor(silent{}, report.Asked{})
		_, err := Transfer(t.Context(), monitor, nil, dmaxfer.Options{MaxDuration: limit},
			func(ctx context.Context, o dmaxfer.Options) (job.Summary, error) {
				time.Sleep(time.Hour)
				began = time.Now()
				o.Notify(job.PeerKnown{Protocol: wire.Native})
				<-ctx.Done()
				return job.Summary{}, context.Cause(ctx)
			})
		if took := time.Since(began); took != limit || !errors.Is(err, errDurationLimit) {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}

// silent reports nothing.
type silent struct{ report.Reporter }

func (silent) Interval() time.Duration { return 0 }

func (silent) Event(job.Event) {}
