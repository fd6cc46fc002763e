package ping

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// inbox is where messages of the peer arrive.
type inbox interface {
	// receive returns the next message, valid until the next call, when it arrived, and whether that was at a consumer.
	receive(ctx context.Context) (arrival, error)

	// receiveControl is receive for the control channel alone.
	receiveControl(ctx context.Context) (arrival, error)
}

// arrival is a message of the peer.
type arrival struct {
	message []byte
	at      time.Time
	fast    bool
}

// conversation is one side of the round trips over one connection. While run waits for the calls into the device, their
// goroutine alone uses it.
type conversation struct {
	options Options
	conn    comch.Conn
	session *negotiate.PingSession
	trace   job.Trace // of the session's messages
	inbox   inbox
	fast    *fastPath     // nil: the path is the control channel, or not known yet
	scratch []byte        // a message to be sent, reused
	heard   atomic.Uint64 // messages of the peer

	began time.Time // when the PING in flight was sent
	trips []time.Duration
}

func newConversation(o Options, conn comch.Conn) *conversation {
	local := negotiate.PingLocal{Greeting: o.greeting(), Text: o.Text}
	return &conversation{
		options: o, conn: conn, session: negotiate.NewPing(o.Side, local, conn.MaxMessage()),
		trace: job.Trace{Log: o.Log, Protocol: "ping"},
		inbox: channelInbox{conn}, trips: make([]time.Duration, 0, o.Count),
	}
}

// run makes the round trips, and ends the connection.
func (c *conversation) run(ctx context.Context, disconnect func() error) (Summary, error) {
	calls := job.Calls{Slow: c.options.silence}
	beat := func() negotiate.Beat { return negotiate.Beat{Work: c.heard.Load()} }
	err := calls.Do(ctx, c.options.IdleTimeout, beat, c.converse)
	if calls.Hung() {
		return Summary{}, job.Hung(err) // the call may still use the connection
	}
	if err == nil {
		c.awaitDisconnect()
	} else {
		c.tell(err)
	}
	if closeErr := disconnect(); err == nil && closeErr != nil {
		c.options.Log.Warn().Err(closeErr).Msg("the control channel did not close cleanly")
	}
	if err != nil {
		return Summary{}, err
	}
	summary := Summarize(c.trips)
	summary.Fast, summary.Size = c.fast != nil, int(c.options.Size)
	return summary, nil
}

// converse makes the round trips of both sides.
func (c *conversation) converse(ctx context.Context) error {
	err := c.exchange(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		err = cause // without the call that it ended
	}
	if mayFollowLoss(err) {
		err = c.explain(ctx, err)
	}
	if c.fast == nil {
		return err
	}
	if closeErr := c.fast.close(); closeErr != nil {
		c.options.Log.Warn().Err(closeErr).Msg("consumer and producer did not close cleanly")
	}
	return err
}

func (c *conversation) exchange(ctx context.Context) error {
	if err := c.transmit(ctx, c.session.Start()); err != nil {
		return err
	}
	for c.session.State() != negotiate.Done {
		received, err := c.inbox.receive(ctx)
		if err == nil {
			err = c.take(ctx, received)
		}
		if err == nil {
			err = c.sendNext(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take handles a message of the peer.
func (c *conversation) take(ctx context.Context, received arrival) error {
	c.heard.Add(1)
	receive := c.session.Receive
	if received.fast {
		receive = c.session.ReceiveFast
	}
	step, err := receive(received.message, c.buffer())
	c.trace.Received(received.message, c.session.State())
	if err != nil {
		return err
	}
	if step.Reply != nil {
		if err := c.send(ctx, step.Reply, step.OnPath); err != nil {
			return err
		}
	}
	switch step.Event {
	case negotiate.Greeted:
		c.options.Log.Info().Bool("fast", step.Fast).Msg("connected")
		c.options.Notify(Connected{Version: negotiate.PingVersion, Fast: step.Fast})
		if step.Fast {
			return c.openFast(ctx)
		}
	case negotiate.PeerConsumer:
		c.inbox = c.fast
		return c.fast.connect(ctx, step.Consumer)
	case negotiate.PeerText:
		c.options.Notify(Text{From: c.options.Side.Other(), Text: step.Text})
	case negotiate.RoundTrip:
		c.trips = append(c.trips, received.at.Sub(c.began))
	}
	return nil
}

// openFast starts this side's consumer and producer, and tells the peer of the consumer.
func (c *conversation) openFast(ctx context.Context) error {
	fast, err := openFastPath(ctx, c.options.Device, c.conn, c.session.Largest())
	if err != nil {
		return err
	}
	c.fast = fast
	message, err := c.session.Consumer(fast.consumer.ID())
	if err != nil {
		return err
	}
	return c.transmit(ctx, message)
}

// sendNext sends what this side sends by itself now.
func (c *conversation) sendNext(ctx context.Context) error {
	for {
		message := c.session.Next(c.buffer())
		if message == nil {
			return nil
		}
		c.began = time.Now()
		if err := c.send(ctx, message, true); err != nil {
			return err
		}
	}
}

// buffer returns memory for the next message to be sent.
func (c *conversation) buffer() []byte {
	if c.fast != nil {
		return c.fast.buffer()
	}
	return c.scratch[:0]
}

func (c *conversation) send(ctx context.Context, message []byte, onPath bool) error {
	if onPath && c.fast != nil {
		c.trace.Sent(message, c.session.State())
		return c.fast.send(ctx, message)
	}
	if c.fast == nil {
		c.scratch = message
	}
	return c.transmit(ctx, message)
}

// transmit sends a message over the control channel.
func (c *conversation) transmit(ctx context.Context, message []byte) error {
	c.trace.Sent(message, c.session.State())
	return c.conn.Send(ctx, message)
}

// explain finds the cause behind a call that failed because the peer may be gone: what it has sent before. Only an
// ABORT and a DONE matter; this side can no longer do what other messages are about.
func (c *conversation) explain(ctx context.Context, failed error) error {
	waiting, cancel := context.WithTimeout(ctx, job.LossNotice)
	defer cancel()
	for {
		received, err := c.inbox.receiveControl(waiting)
		switch {
		case errors.Is(err, comch.ErrPeerLost), errors.Is(err, comch.ErrClosed):
			return c.session.Disconnected()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil, waiting.Err() != nil:
			return failed
		}
		if !ends(received.message) {
			c.trace.Received(received.message, c.session.State())
			continue
		}
		_, err = c.session.Receive(received.message, nil)
		c.trace.Received(received.message, c.session.State())
		if err != nil || c.session.State() == negotiate.Done {
			return err
		}
	}
}

// ends reports whether a message is an ABORT or a DONE.
func ends(message []byte) bool {
	_, notAbort := negotiate.DecodeAbort(message)
	return notAbort == nil || negotiate.DecodeDone(message) == nil
}

// tell tells the peer why this side gives up, and lets it read that. A peer that has given up by itself need not.
func (c *conversation) tell(err error) {
	message := c.session.Abort(negotiate.AbortCode(c.options.ExitCode(err)), err.Error())
	if message == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	if err := c.transmit(ctx, message); err != nil {
		c.options.Log.Debug().Err(err).Msg("could not report the failure to the peer")
		return
	}
	for ctx.Err() == nil { // whatever the peer sends
		received, err := c.conn.Recv(ctx)
		if err != nil {
			return
		}
		c.trace.Received(received, c.session.State())
		if _, err := negotiate.DecodeAbort(received); err == nil {
			return
		}
	}
}

// awaitDisconnect lets the host, which disconnects, read the DPU's last message.
func (c *conversation) awaitDisconnect() {
	if c.options.Side == negotiate.Host {
		return
	}
	select {
	case <-c.conn.Done():
	case <-time.After(job.PartingTime):
	}
}
