package service

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A side waits for the end of its peer's copy only as long as the peer may still be there: an RDMA device whose retries
// have failed knows of a network that is gone long before the control connection does.
func TestDrainTime(t *testing.T) {
	for _, c := range []struct {
		copied error
		want   time.Duration // if the idle timeout is longer
	}{
		{nil, closeTime},
		{errors.New("disk full"), drainTime},
		{job.NewError(job.ErrIdle, job.ErrPeerIdle, "", "no message"), job.PartingTime},
		{&wire.Error{Err: wire.ErrMalformed}, job.PartingTime},
		{wire.ErrOutcomeUnknown, job.PartingTime},
		{wire.ErrPeerLost, job.PartingTime},
		{fmt.Errorf("%w: %w", comch.ErrPeerLost, errors.New("endpoint timeout")), job.PartingTime},
	} {
		for _, idle := range []time.Duration{time.Second, time.Hour} {
			s := stream{exchange: &exchange{idle: idle}}
			if got, want := s.grace(c.copied), min(c.want, idle); got != want {
				t.Errorf("after %v with an idle timeout of %s: %s, want %s", c.copied, idle, got, want)
			}
		}
	}
}
