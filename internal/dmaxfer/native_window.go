package dmaxfer

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a native copy gets its end of the window.

func (n *native) expose(ctx context.Context) error {
	reach, address, descriptor, err := n.memory.expose(n.layout())
	if err != nil {
		return err
	}
	n.reach = reach
	message, err := n.session.Window(address, descriptor)
	if err != nil {
		return err
	}
	if err := n.send(ctx, message); err != nil {
		return err
	}
	return n.part.reached(ctx)
}

func (n *native) reachFor(ctx context.Context, window negotiate.Window) error {
	began := time.Now()
	reach, err := n.memory.open(n.layout(), window)
	if err != nil && n.wasSilentSince(began) {
		return failure(ErrIdle, err, "look at the other side", "the host does not answer, and its window cannot be opened")
	}
	if err != nil {
		return err
	}
	n.reach = reach
	return n.part.reached(ctx)
}

// wasSilentSince tells whether the peer has missed a heartbeat while this side was doing something else: a device may need a host
// that runs to open its memory, and can only say that it failed.
func (n *native) wasSilentSince(began time.Time) bool {
	return time.Since(began) > 2*longestPulse && len(n.arrived) == 0
}
