//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
)

// A bandwidth so low that a chunk takes longer than the idle timeout is the user's choice, and no stall. A deadline
// that is too near for it counts when it comes, by its own name.
func TestRunPaced(t *testing.T) {
	setup := newSetup(t, "")
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			for _, paced := range []int{0, 1} {
				sides := [2]Options{*way[0], *way[1]}
				sides[0].File, sides[1].File = t.TempDir()+"/file", t.TempDir()+"/file"
				jobtest.WriteFile(t, sides[0].File, content(2*testChunk))
				sides[0].IdleTimeout, sides[1].IdleTimeout = 200*time.Millisecond, 200*time.Millisecond
				sides[paced].Bandwidth = 2 * testChunk // half a second for the second chunk
				both := setup.runAs(t.Context(), sides[0], sides[1])
				must(t, both.errs[sides[0].Side])
				must(t, both.errs[sides[1].Side])
			}
		})
	}
}

func TestRunPacedWithinADeadline(t *testing.T) {
	late := errors.New("too late")
	setup := newSetup(t, "")
	setup.host.Bandwidth = 1
	jobtest.WriteFile(t, setup.host.File, content(2*testChunk))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
	defer cancel()
	both := setup.runAs(ctx, setup.host, setup.dpu)
	mustBe(t, both.errs[setup.host.Side], late)
}
