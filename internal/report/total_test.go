package report

import (
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

// Where all sources fail for one reason, that is the result; otherwise some have failed.
func TestSomeSources(t *testing.T) {
	for name, tc := range map[string]struct {
		tried    int
		failures []error
		code     int
	}{
		"none":        {2, nil, exit.OK},
		"some":        {2, []error{job.ErrTarget}, exit.SomeFailed},
		"all alike":   {2, []error{job.ErrTarget, fmt.Errorf("x: %w", job.ErrTarget)}, exit.Target},
		"all, mixed":  {2, []error{job.ErrTarget, job.ErrSource}, exit.SomeFailed},
		"all but one": {3, []error{job.ErrTarget, job.ErrTarget}, exit.SomeFailed},
	} {
		if got := exit.Code(SomeSources(tc.tried, tc.failures)); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.code)
		}
	}
}

func TestUnfinished(t *testing.T) {
	for err, want := range map[error]bool{
		job.ErrTarget: false, job.ErrSource: false, service.ErrRefused: false, job.ErrLimit: false, job.ErrIdle: true,
		job.ErrHung: true, error(exit.Interrupted{Signal: 15}): true,
	} {
		if Unfinished(err) != want {
			t.Errorf("%v ends the command: %t, want %t", err, !want, want)
		}
	}
}
