package dmaxfer

import (
	"context"
)

// This file is what goes to and comes from the peer of a native copy.

// hear brings in the peer's messages until the connection ends.
func (n *native) hear(ctx context.Context) {
	defer close(n.arrived)
	for {
		message, err := n.conn.Recv(ctx)
		if err != nil {
			n.deaf = err
			return
		}
		select {
		case n.arrived <- message:
		case <-ctx.Done():
			n.deaf = context.Cause(ctx)
			return
		}
	}
}

// answer sends what the session replies. That it cannot be sent shows soon enough.
func (n *native) answer(ctx context.Context, message []byte) {
	if err := n.send(ctx, message); err != nil {
		n.options.Log.Debug().Err(err).Msg("an answer could not be sent")
	}
}

func (n *native) send(ctx context.Context, message []byte) error {
	if message == nil {
		return nil
	}
	n.messages++
	ctx, cancel := n.watch.untilSilent(ctx)
	defer cancel()
	return n.conn.Send(ctx, message)
}

// beat tells the peer that this side lives and how far it is, and ends a copy that goes nowhere.
func (n *native) beat(ctx context.Context) error {
	n.watch.worked(n.progress.beat())
	if n.part == nil {
		return n.watch.verdict(0) // and the peer is not to hear anything yet
	}
	if err := n.watch.verdict(n.part.patience()); err != nil {
		return err
	}
	n.part.hurry()
	return n.sayAlive(ctx)
}

func (n *native) sayAlive(ctx context.Context) error {
	message, err := n.session.Beat(n.message[:0], n.progress.beat())
	if err != nil {
		return err
	}
	return n.send(ctx, message)
}
