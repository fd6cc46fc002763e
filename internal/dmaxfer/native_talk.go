package dmaxfer

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
)

// This file is what goes to and comes from the peer of a native copy.

// hear takes the peer's next message, if there is one.
func (n *native) hear(ctx context.Context) (heard bool, err error) {
	message, heard := n.conn.TryRecv()
	if !heard {
		return false, nil
	}
	return true, n.take(ctx, message)
}

// poller lets the lanes of a part exchange messages with the peer while ctx lasts. It implements pump.Poller.
type poller struct {
	*native
	ctx context.Context
}

// Poll takes the turn, if nobody has it. What ends the copy is left to the owner, who is woken for it.
func (p *poller) Poll() {
	if !p.turn.try() {
		return
	}
	defer p.turn.leave()
	if p.broken != nil {
		return
	}
	if p.broken = p.exchange(); p.broken != nil {
		p.job(func() func() error { return nothing })
	}
}

// fewMessages is how many a lane handles before it gives the turn away: its own work, and the owner's, wait.
const fewMessages = 16

func (p *poller) exchange() error {
	for range fewMessages {
		heard, err := p.hear(p.ctx)
		if err != nil {
			return err
		}
		if p.part.due() {
			if err := p.flush(p.ctx); err != nil {
				return err
			}
		} else if !heard {
			break
		}
	}
	return nil
}

// Start implements pump.Poller.
func (p *poller) Start() { p.conn.StartPolling() }

// Stop implements pump.Poller.
func (p *poller) Stop() { p.conn.StopPolling() }

// Patience implements pump.Poller.
func (p *poller) Patience() int { return p.conn.Patience() }

func (n *native) poller(ctx context.Context) pump.Poller { return &poller{native: n, ctx: ctx} }

// answer sends what the session replies. That it cannot be sent shows soon enough.
func (n *native) answer(ctx context.Context, message []byte) {
	if err := n.send(ctx, message); err != nil {
		n.options.Log.Debug().Err(err).Msg("could not send an answer")
	}
}

func (n *native) send(ctx context.Context, message []byte) error {
	if message == nil {
		return nil
	}
	n.messages++
	silence := n.watch.untilSilent(ctx)
	defer silence.end()
	return n.conn.Send(silence, message)
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
	if n.part.hurry(); n.part.due() {
		if err := n.part.flush(ctx); err != nil {
			return err
		}
	}
	return n.sayAlive(ctx)
}

func (n *native) sayAlive(ctx context.Context) error {
	message, err := n.session.Beat(n.message[:0], n.progress.beat())
	if err != nil {
		return err
	}
	return n.send(ctx, message)
}
