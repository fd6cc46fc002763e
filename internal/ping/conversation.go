// Package ping lets two commands of this program, one on each side, make round trips over Comch: to measure them, to
// show each side's text on the other, and to ask each other questions.
//
//	Meet ── Conversation ──┬─ Run: texts, and round trips over the control channel or a fastPath
//	                       └─ Turns ── Ask: a question ──► the peer's Handler, which answers in pieces
//
// Each side is a command that makes requests as to a daemon while it is its turn, and a daemon for the other one after
// that: the DPU first, then the host. Each turn has a session of its own. This package must not format anything for a
// user, and does not know why a text is sent or what is asked.
package ping

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Meeting describes how one side meets the other.
type Meeting struct {
	Side        wire.Side
	Device      *doca.Device  // a host function on the host, a function of the DPU there
	Representor string        // on the DPU: the host function to serve, as Device.OpenRepresentor takes it
	Name        string        // of the Comch server, which no other command has
	Wait        time.Duration // for the peer to appear and be free
	IdleTimeout time.Duration // for each message and each whole answer of the peer, and so for the work behind it
	Log         zerolog.Logger
}

// Conversation is one side of the requests over one connection. It is used by one goroutine at a time. Its turns:
//
//	DPU:   asking ── pass ──► answering ── the peer passes ──► over
//	host:  answering ── the peer passes ──► asking ── pass ──► over
//
// A pass is an empty text.
type Conversation struct {
	Meeting
	conn    comch.Conn
	end     func() error
	role    service.Role     // in this turn
	session *service.Session // of this turn, which keeps the order
	trace   job.Trace
	fast    *fastPath     // for payloads in this turn; nil: the control channel
	scratch []byte        // a message to be sent, reused
	arrived time.Time     // of the last message of the peer
	heard   atomic.Uint64 // messages of the peer
	told    bool          // the peer knows why this side gives up
	over    bool
}

// Meet waits for the peer and connects to it. It returns the errors of negotiate, comch and doca, and *job.Error.
func Meet(ctx context.Context, m Meeting) (*Conversation, error) {
	m.Log.Info().Stringer("side", m.Side).Str("device", m.Device.Info().PCIAddress).Msg("waiting for the peer")
	if m.Side == wire.Host {
		return dial(ctx, m)
	}
	conn, disconnect, err := comch.Offer{
		Device: m.Device, Representor: m.Representor, Names: []string{m.Name},
		Busy: func() {
			m.Log.Info().Str("representor", m.Representor).
				Msg("waiting for another process that serves the representor to end")
		},
	}.AcceptOne(ctx, comch.Within(m.Wait))
	if err != nil {
		return nil, err
	}
	return begin(ctx, m, conn, disconnect)
}

// dial is Meet on the host. A DPU that serves another host disconnects this one, which then tries again.
func dial(ctx context.Context, m Meeting) (*Conversation, error) {
	dialer := comch.NewDialer(m.Device, m.Name, comch.Within(m.Wait))
	level := zerolog.InfoLevel
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c, failed := begin(ctx, m, conn, conn.Close)
		if !errors.Is(failed, comch.ErrPeerLost) {
			return c, failed
		}
		m.Log.WithLevel(level).Msg("the DPU closed the connection without sending anything, retrying: " +
			"it may be serving another host")
		level = zerolog.DebugLevel // after the first time
		conn, err = dialer.Redial(ctx)
	}
	return nil, err
}

// begin begins the first turn.
func begin(ctx context.Context, m Meeting, conn comch.Conn, end func() error) (*Conversation, error) {
	c := &Conversation{Meeting: m, conn: conn, end: end}
	role := service.Command
	if m.Side == wire.Host {
		role = service.Daemon
	}
	if err := c.greet(ctx, role); err != nil {
		err = c.explain(ctx, err)
		c.tell(err)
		return nil, errors.Join(err, end())
	}
	m.Log.Info().Msg("connected")
	return c, nil
}

// greet begins the session of a turn: the side that asks is the command.
func (c *Conversation) greet(ctx context.Context, role service.Role) (err error) {
	limits := wire.Limits{MaxMessage: c.conn.MaxMessage()}
	if c.session, err = service.New(role, service.Greeting{}, limits); err != nil {
		return err
	}
	c.role, c.fast = role, nil
	c.trace = job.Trace{Log: c.Log.With().Stringer("as", role).Logger(), Protocol: "service"}
	if greeting := c.session.Start(); greeting != nil {
		err = c.transmit(ctx, greeting)
	}
	if err == nil {
		_, err = c.receive(ctx, service.Greeted)
	}
	return err
}

// waiting returns the context of a wait for something from the peer.
func (c *Conversation) waiting(ctx context.Context, noun string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.IdleTimeout, job.NewError(job.ErrIdle, nil, "check the other side",
		"timeout: no %s from the %s for %s", noun, c.Side.Other(), c.IdleTimeout))
}

// transmit sends a message over the control channel.
func (c *Conversation) transmit(ctx context.Context, message []byte) error {
	c.trace.Sent(message, c.session.State())
	waiting, cancel := c.waiting(ctx, "message")
	defer cancel()
	return c.conn.Send(waiting, message)
}

// send sends a PING or a PONG over its path.
func (c *Conversation) send(
	ctx context.Context, kind service.PingKind, encode func(dst []byte) ([]byte, error),
) error {
	if c.fast == nil || kind != service.PingBytes {
		message, err := encode(c.scratch[:0])
		if err != nil {
			return err
		}
		c.scratch = message
		return c.transmit(ctx, message)
	}
	message, err := encode(c.fast.buffer())
	if err != nil {
		return err
	}
	c.trace.Sent(message, c.session.State())
	return c.fast.send(ctx, message)
}

// receive returns the content of the next message of the peer, which must be of one kind.
func (c *Conversation) receive(ctx context.Context, want service.Event) (service.Ping, error) {
	waiting, cancel := c.waiting(ctx, "message")
	defer cancel()
	if ctx.Err() != nil { // Recv prefers a message that waits
		return service.Ping{}, context.Cause(ctx)
	}
	message, fast, err := c.next(waiting)
	if err != nil {
		return service.Ping{}, err
	}
	c.arrived = time.Now()
	c.heard.Add(1)
	if err := c.asRefusal(message); err != nil {
		return service.Ping{}, err
	}
	step, err := c.session.Receive(message)
	c.trace.Received(message, c.session.State())
	if step.Reply != nil {
		c.told = err != nil
		err = errors.Join(err, c.transmit(ctx, step.Reply))
	}
	apart := c.fast != nil && want != service.Greeted && step.Ping.Kind == service.PingBytes
	switch {
	case err != nil:
		return service.Ping{}, err
	case step.Event == service.Refused:
		return service.Ping{}, step.Refusal
	case step.Event != want, fast != apart:
		return service.Ping{}, c.outOfOrder(wire.TypeOf(message))
	}
	return step.Ping, nil
}

// next returns the next message, and whether it has arrived at a consumer.
func (c *Conversation) next(ctx context.Context) (message []byte, fast bool, err error) {
	if c.fast != nil {
		return c.fast.receive(ctx)
	}
	message, err = c.conn.Recv(ctx)
	return message, false, err
}

// asRefusal returns the error of a peer that gives up, in either role, and nil for any other message.
func (c *Conversation) asRefusal(message []byte) error {
	if wire.TypeOf(message) != wire.TypeRefused {
		return nil
	}
	refused, err := service.DecodeRefused(message)
	if err != nil || !refused.Final {
		return nil // the session judges it
	}
	c.trace.Received(message, c.session.State())
	return &native.PeerAborted{Code: refused.Code, Text: refused.Text}
}

func (c *Conversation) outOfOrder(message wire.Type) error {
	return &wire.Error{State: c.session.State(), Message: message, Err: wire.ErrOutOfOrder}
}

// roundTrip makes a request and returns the answer. A *service.Refusal is an answer, too: other requests may follow.
func (c *Conversation) roundTrip(ctx context.Context, kind service.PingKind, payload []byte) (service.Ping, error) {
	err := c.send(ctx, kind, func(dst []byte) ([]byte, error) { return c.session.Ping(dst, payload, kind) })
	if err != nil {
		return service.Ping{}, err
	}
	return c.receive(ctx, service.RoundTrip)
}

// answerer returns the payload of the answer to a request. A *service.Refusal is an answer, too.
type answerer func(ctx context.Context, p service.Ping) ([]byte, error)

// turns calls ask in this side's turn, in which it may make requests, and answer for each request in the peer's turn.
func (c *Conversation) turns(ctx context.Context, ask func(context.Context) error, answer answerer) error {
	err := c.turn(ctx, ask, answer)
	if err == nil {
		err = c.greet(ctx, c.role.Other())
	}
	if err == nil {
		err = c.turn(ctx, ask, answer)
	}
	c.over = err == nil
	return c.explain(ctx, err)
}

func (c *Conversation) turn(ctx context.Context, ask func(context.Context) error, answer answerer) error {
	if c.role == service.Daemon {
		return c.answer(ctx, answer)
	}
	if err := ask(ctx); err != nil {
		return err
	}
	_, err := c.roundTrip(ctx, service.PingText, nil)
	return err
}

// answer answers the requests of the peer until it passes.
func (c *Conversation) answer(ctx context.Context, answer answerer) error {
	for {
		asked, err := c.receive(ctx, service.Pinged)
		if err != nil {
			return err
		}
		var payload []byte
		passes := asked.Kind == service.PingText && len(asked.Payload) == 0
		if !passes {
			payload, err = answer(ctx, asked)
		}
		refused, is := errors.AsType[*service.Refusal](err)
		if err != nil && !is {
			return err
		}
		err = c.send(ctx, asked.Kind, func(dst []byte) ([]byte, error) {
			if refused != nil {
				return c.session.Refuse(dst, *refused)
			}
			return c.session.Pong(dst, payload)
		})
		if err != nil || passes {
			return err
		}
	}
}

// explain returns the cause behind an error: the context's, or if the peer may be gone what it has sent before. Only a
// REFUSED matters; this side can no longer do what other messages are about.
func (c *Conversation) explain(ctx context.Context, failed error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(failed, cause) {
		return cause // without the call that it ended
	}
	if !mayFollowLoss(failed) {
		return failed
	}
	waiting, cancel := context.WithTimeout(ctx, job.LossNotice)
	defer cancel()
	for {
		message, err := c.conn.Recv(waiting)
		switch {
		case errors.Is(err, comch.ErrPeerLost), errors.Is(err, comch.ErrClosed):
			return comch.ErrPeerLost
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && errors.Is(failed, doca.ErrDisconnected):
			return comch.ErrPeerLost
		case err != nil:
			return failed
		}
		if err := c.asRefusal(message); err != nil {
			return err
		}
		c.trace.Received(message, c.session.State())
	}
}

// mayFollowLoss reports whether an error can be the consequence of a peer that is gone: the device notices that in many
// ways, and before the control channel does.
func mayFollowLoss(err error) bool {
	_, ofDevice := errors.AsType[*doca.Error](err)
	return ofDevice || job.MayFollowLoss(err) || errors.Is(err, doca.ErrDisconnected) || errors.Is(err, comch.ErrClosed)
}

// tell tells the peer why this side gives up, and lets it read that. A peer that has given up by itself need not, and
// after a call that hangs the connection may be in use.
func (c *Conversation) tell(reason error) {
	_, aborted := errors.AsType[*native.PeerAborted](reason)
	if aborted || errors.Is(reason, comch.ErrPeerLost) || errors.Is(reason, job.ErrHung) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	if !c.told {
		refusal := service.Refusal{Code: wire.AbortCode(exit.Code(reason)), Text: reason.Error(), Final: true}
		message := service.AppendRefused(nil, refusal, c.conn.MaxMessage())
		if err := c.transmit(ctx, message); err != nil {
			c.Log.Debug().Err(err).Msg("could not report the failure to the peer")
		}
	}
	for {
		message, err := c.conn.Recv(ctx)
		if err != nil || c.asRefusal(message) != nil {
			return
		}
		c.trace.Received(message, c.session.State())
	}
}

// Close ends the connection. After Turns the host, which has the last answer, ends it first.
func (c *Conversation) Close() error {
	if c.over && c.Side == wire.DPU {
		select {
		case <-c.conn.Done():
		case <-time.After(job.PartingTime):
		}
	}
	return c.end()
}
