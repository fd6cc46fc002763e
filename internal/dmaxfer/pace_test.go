//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A bandwidth so low that a piece takes longer than the idle timeout is the user's wish, and no standstill. A deadline
// that is too near for it counts when it comes, by its own name.
func TestRunPaced(t *testing.T) {
	stand := newStand(t, "")
	for name, way := range stand.directions() {
		t.Run(name, func(t *testing.T) {
			for _, paced := range []int{0, 1} {
				sides := [2]Options{*way[0], *way[1]}
				sides[0].File, sides[1].File = t.TempDir()+"/file", t.TempDir()+"/file"
				writeFile(t, sides[0].File, content(2*testChunk))
				sides[0].IdleTimeout, sides[1].IdleTimeout = 200*time.Millisecond, 200*time.Millisecond
				sides[paced].Bandwidth = 2 * testChunk // half a second for the second piece
				both := stand.runAs(t.Context(), sides[0], sides[1])
				must(t, both.errs[sides[0].Side])
				must(t, both.errs[sides[1].Side])
			}
		})
	}
}

func TestRunPacedWithinADeadline(t *testing.T) {
	late := errors.New("too late")
	stand := newStand(t, "")
	stand.host.Bandwidth = 1
	writeFile(t, stand.host.File, content(2*testChunk))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
	defer cancel()
	both := stand.runAs(ctx, stand.host, stand.dpu)
	mustBe(t, both.errs[stand.host.Side], late)
}
