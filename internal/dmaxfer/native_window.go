package dmaxfer

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a native copy gets its end of the window.

// expose makes the host's window in a job, since a device may take its time to register memory.
func (n *native) expose(ctx context.Context) {
	n.job(func() func() error {
		reach, address, descriptor, err := n.memory.expose(n.layout())
		n.opened = reach
		return func() error {
			if err != nil {
				return err
			}
			n.reach = reach
			return n.offer(ctx, address, descriptor)
		}
	})
}

// offer tells the DPU where the window is.
func (n *native) offer(ctx context.Context, address uint64, descriptor []byte) error {
	message, err := n.session.Window(address, descriptor)
	if err != nil {
		return err
	}
	if err := n.send(ctx, message); err != nil {
		return err
	}
	return n.part.reached(ctx)
}

// reachFor opens the host's window in a job, since a device may wait for the host to answer: meanwhile the peer is to be heard, and to
// hear of this side.
func (n *native) reachFor(ctx context.Context, window negotiate.Window) {
	n.job(func() func() error {
		reach, err := n.memory.open(n.layout(), window)
		if err != nil {
			return func() error { return n.unreachable(ctx, err) }
		}
		n.opened = reach
		return func() error {
			n.reach = reach
			return n.part.reached(ctx)
		}
	})
}

// unreachable blames a host that has fallen silent: a device may need one that runs to open its memory, and can only say that it
// failed.
func (n *native) unreachable(ctx context.Context, err error) error {
	if _, said := n.hear(ctx); said != nil {
		return said
	}
	if n.watch.missed() {
		return failure(ErrIdle, err, "check the other side",
			"timeout: no message from the host, and its window cannot be imported")
	}
	return err
}
