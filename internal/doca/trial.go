package doca

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// This file shows how a driver behaves, for "dma-copy doctor --probe". No copy needs it.

// TryArming arms the progress engine of the server once. CodeNotSupported: the driver has no notifications for it, and
// it is polled. Implements: doca_pe_request_notification.
func (s *Server) TryArming() error { return s.endpoint.tryArming() }

// TryArming does for a client what it does for a Server.
func (c *Client) TryArming() error { return c.endpoint.tryArming() }

func (e *endpoint) tryArming() error {
	return e.call(func() error {
		if e.life.state != active {
			return e.finishCause()
		}
		if err := e.abi.Arm(cabi.Progress(e.channel)); err != nil {
			return err
		}
		return e.abi.Clear(cabi.Progress(e.channel))
	})
}

// SubmitNotified submits one copy to an armed engine and waits for the notification, without a poll. It reports whether
// there was one before ctx ended; Reap has the completion.
func (e *Engine) SubmitNotified(ctx context.Context, c Copy) (notified bool, err error) {
	if e.engine == nil {
		return false, ErrClosed
	}
	if err := e.abi.Arm(cabi.Progress(e.engine)); err != nil {
		return false, err
	}
	if _, err = e.Submit([]Copy{c}); err == nil {
		err = e.waiter.waitWith(ctx)
	}
	if clearErr := e.abi.Clear(cabi.Progress(e.engine)); err == nil {
		err = clearErr
	}
	return ctx.Err() == nil, err
}
