package ping

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// lastText is the number of texts after which a side makes no more requests: that for the user, and an empty one.
const lastText = 2

// arrival is a message of the peer.
type arrival struct {
	message []byte // valid until the next one is received
	at      time.Time
	fast    bool // it arrived at a consumer
}

// half is one of the two sessions of a conversation.
type half struct {
	session *service.Session
	trace   job.Trace
	fast    *fastPath // for its PINGs and PONGs with a payload; nil: they go over the control channel
}

// conversation is one side of the round trips over one connection. While run waits for the calls into the device, their
// goroutine alone uses it.
type conversation struct {
	options Options
	conn    comch.Conn
	asks    half          // this side is the command
	answers half          // this side is the daemon
	scratch []byte        // a message to be sent, reused
	payload []byte        // of a PING, reused
	heard   atomic.Uint64 // messages of the peer

	texts int // of this side, that were sent
	over  bool
	began time.Time // when the PING in flight was sent
	trips []time.Duration

	peerTexts int
}

func newConversation(o Options, conn comch.Conn) (*conversation, error) {
	c := &conversation{options: o, conn: conn, trips: make([]time.Duration, 0, o.Count)}
	for role, h := range map[service.Role]*half{service.Command: &c.asks, service.Daemon: &c.answers} {
		limits := wire.Limits{MaxMessage: conn.MaxMessage()}
		session, err := service.New(role, service.Greeting{}, limits)
		if err != nil {
			return nil, err
		}
		log := o.Log.With().Stringer("as", role).Logger()
		*h = half{session: session, trace: job.Trace{Log: log, Protocol: "service"}}
	}
	return c, nil
}

// run makes the round trips, and ends the connection.
func (c *conversation) run(ctx context.Context, disconnect func() error) (Summary, error) {
	calls := job.Calls{Slow: c.options.silence}
	beat := func() native.Beat { return native.Beat{Work: c.heard.Load()} }
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
	summary.Fast, summary.Size = c.asks.fast != nil, int(c.options.Size)
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
	for _, h := range []*half{&c.asks, &c.answers} {
		if h.fast == nil {
			continue
		}
		if closeErr := h.fast.close(); closeErr != nil {
			c.options.Log.Warn().Err(closeErr).Msg("consumer and producer did not close cleanly")
		}
	}
	return err
}

func (c *conversation) exchange(ctx context.Context) error {
	c.answers.session.Start()
	if err := c.transmit(ctx, &c.asks, c.asks.session.Start()); err != nil {
		return err
	}
	for !c.ended() {
		received, err := c.receive(ctx)
		if err == nil {
			err = c.take(ctx, received)
		}
		if err == nil {
			err = c.request(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended reports whether no side makes any more requests.
func (c *conversation) ended() bool { return c.over && c.peerTexts == lastText }

// receive returns the next message, and waits at the consumer of the series that is under way, too.
func (c *conversation) receive(ctx context.Context) (arrival, error) {
	first, last, firstEnded := c.asks.fast, c.answers.fast, c.texts == lastText
	if c.options.Side == wire.Host {
		first, last, firstEnded = last, first, c.peerTexts == lastText
	}
	if firstEnded {
		first = last
	}
	if first != nil {
		return first.receive(ctx)
	}
	return c.receiveControl(ctx)
}

// receiveControl is receive for the control channel alone.
func (c *conversation) receiveControl(ctx context.Context) (received arrival, err error) {
	received.message, err = c.conn.Recv(ctx)
	received.at = time.Now()
	return received, err
}

// take handles a message of the peer.
func (c *conversation) take(ctx context.Context, received arrival) error {
	c.heard.Add(1)
	h := c.addressee(received.message)
	step, err := h.session.Receive(received.message)
	h.trace.Received(received.message, h.session.State())
	if step.Reply != nil {
		if sendErr := c.transmit(ctx, h, step.Reply); err == nil {
			err = sendErr
		}
	}
	pinged := step.Event == service.Pinged || step.Event == service.RoundTrip
	apart := pinged && step.Ping.Kind == service.PingBytes && h.fast != nil
	switch {
	case err != nil:
		return reworded(err)
	case received.fast != apart:
		return outOfOrder(h, received.message)
	case step.Event == service.Pinged:
		return c.answer(ctx, step.Ping)
	case step.Event == service.RoundTrip:
		return c.conclude(ctx, received.at, step.Ping)
	case step.Event == service.Refused:
		return reworded(step.Refusal)
	case step.Event == service.Greeted && h == &c.asks:
		c.options.Log.Info().Msg("connected")
		c.options.Notify(Connected{Version: int(h.session.Version())})
	}
	return nil
}

// addressee returns the session that a message is for.
func (c *conversation) addressee(message []byte) *half {
	t := wire.TypeOf(message)
	greets := t == wire.TypeGreeting && c.answers.session.State() == service.AwaitGreeting
	if greets || t == wire.TypePing {
		return &c.answers
	}
	return &c.asks
}

func outOfOrder(h *half, message []byte) error {
	return &wire.Error{
		State: h.session.State(), Message: wire.TypeOf(message), Err: wire.ErrOutOfOrder,
	}
}

// answer answers a request of the peer.
func (c *conversation) answer(ctx context.Context, p service.Ping) error {
	payload := p.Payload
	switch {
	case c.peerTexts == lastText, c.isEarly(p.Kind):
		return outOfOrder(&c.answers, service.AppendPing(nil, p))
	case p.Kind == service.PingText:
		payload = nil // this side's text has a PING of its own
		c.peerTexts++
		if c.peerTexts < lastText {
			c.options.Notify(Text{From: c.options.Side.Other(), Text: string(p.Payload)})
		}
	case p.Kind == service.PingConsumer && c.answers.fast != nil:
		return outOfOrder(&c.answers, service.AppendPing(nil, p))
	case p.Kind == service.PingConsumer:
		peer := p.Consumer()
		if err := c.openFast(ctx, &c.answers, c.options.Side.Other(), peer.Size); err != nil {
			return err
		}
		if err := c.answers.fast.connect(ctx, peer.ID); err != nil {
			return err
		}
		payload = service.Consumer{ID: c.answers.fast.consumer.ID(), Size: peer.Size}.Append(nil)
	}
	return c.send(ctx, &c.answers, p.Kind, func(dst []byte) ([]byte, error) {
		return c.answers.session.Pong(dst, payload)
	})
}

// isEarly reports whether the host makes a request before the DPU has had the answers to all of its own. On the fast
// path a PING may overtake the last of them.
func (c *conversation) isEarly(kind service.PingKind) bool {
	overtakes := kind == service.PingBytes && c.answers.fast != nil
	return c.options.Side == wire.DPU && c.peerTexts > 0 && !c.over && !overtakes && kind != service.PingConsumer
}

// conclude handles the answer to this side's request.
func (c *conversation) conclude(ctx context.Context, at time.Time, p service.Ping) error {
	switch p.Kind {
	case service.PingConsumer:
		return c.asks.fast.connect(ctx, p.Consumer().ID)
	case service.PingText:
		c.over = c.texts == lastText
	default:
		c.trips = append(c.trips, at.Sub(c.began))
	}
	return nil
}

// request makes this side's next request, if its turn has come.
func (c *conversation) request(ctx context.Context) error {
	wantsFast := c.options.Path == OnlyFast || c.answers.fast != nil
	switch {
	case c.asks.session.State() != service.Ready || c.over:
		return nil
	case wantsFast && c.asks.fast == nil:
		return c.requestConsumer(ctx)
	case c.texts == 0:
		return c.sendText(ctx, c.options.Text)
	case !c.isTurn():
		return nil
	case len(c.trips) < int(c.options.Count):
		return c.ping(ctx)
	default:
		return c.sendText(ctx, "")
	}
}

// isTurn reports whether the PINGs of this side are next: those of the DPU come first. Its text shows that the host has
// asked for producers and consumers if it wants these.
func (c *conversation) isTurn() bool {
	if c.options.Side == wire.DPU {
		return c.peerTexts > 0
	}
	return c.peerTexts == lastText
}

func (c *conversation) requestConsumer(ctx context.Context) error {
	if err := c.openFast(ctx, &c.asks, c.options.Side, c.options.Size); err != nil {
		return err
	}
	payload := service.Consumer{ID: c.asks.fast.consumer.ID(), Size: c.options.Size}.Append(nil)
	return c.sendPing(ctx, service.PingConsumer, payload)
}

// openFast starts consumer and producer for the PINGs of a side.
func (c *conversation) openFast(ctx context.Context, h *half, of wire.Side, size uint32) error {
	limit := c.options.largestFast()
	if limit == 0 {
		return noPath(c.options.Side)
	}
	if size > limit {
		return tooLarge(of, size, int(limit), "producers and consumers")
	}
	fast, err := openFastPath(ctx, c.options.Device, c.conn, service.PingHeader+int(size))
	if err != nil {
		return err
	}
	h.fast = fast
	h.session.Apart(size)
	return nil
}

func (c *conversation) sendText(ctx context.Context, text string) error {
	if limit := c.conn.MaxMessage() - service.PingHeader; len(text) > limit {
		return tooLarge(c.options.Side, uint32(len(text)), limit, "the control channel")
	}
	c.texts++
	return c.sendPing(ctx, service.PingText, []byte(text))
}

func (c *conversation) ping(ctx context.Context) error {
	limit := c.conn.MaxMessage() - service.PingHeader
	if c.asks.fast == nil && int(c.options.Size) > limit {
		return tooLarge(c.options.Side, c.options.Size, limit, "the control channel")
	}
	c.payload = Payload(c.payload, int(c.options.Size), len(c.trips))
	return c.sendPing(ctx, service.PingBytes, c.payload)
}

func (c *conversation) sendPing(ctx context.Context, kind service.PingKind, payload []byte) error {
	return c.send(ctx, &c.asks, kind, func(dst []byte) ([]byte, error) {
		message, err := c.asks.session.Ping(dst, payload, kind)
		c.began = time.Now()
		return message, err
	})
}

// send sends a PING or a PONG over its path.
func (c *conversation) send(
	ctx context.Context, h *half, kind service.PingKind, encode func(dst []byte) ([]byte, error),
) error {
	if h.fast == nil || kind != service.PingBytes {
		message, err := encode(c.scratch[:0])
		if err != nil {
			return err
		}
		c.scratch = message
		return c.transmit(ctx, h, message)
	}
	message, err := encode(h.fast.buffer())
	if err != nil {
		return err
	}
	h.trace.Sent(message, h.session.State())
	return h.fast.send(ctx, message)
}

// transmit sends a message over the control channel.
func (c *conversation) transmit(ctx context.Context, h *half, message []byte) error {
	h.trace.Sent(message, h.session.State())
	return c.conn.Send(ctx, message)
}

// explain finds the cause behind a call that failed because the peer may be gone: what it has sent before. Only a
// REFUSED matters; this side can no longer do what other messages are about.
func (c *conversation) explain(ctx context.Context, failed error) error {
	waiting, cancel := context.WithTimeout(ctx, job.LossNotice)
	defer cancel()
	for {
		received, err := c.receiveControl(waiting)
		switch {
		case errors.Is(err, comch.ErrPeerLost), errors.Is(err, comch.ErrClosed):
			return ErrLost
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil, waiting.Err() != nil:
			if errors.Is(failed, comch.ErrPeerLost) || errors.Is(failed, doca.ErrDisconnected) {
				return ErrLost
			}
			return failed
		}
		if wire.TypeOf(received.message) == wire.TypeRefused {
			_, err = c.asks.session.Receive(received.message)
		}
		c.asks.trace.Received(received.message, c.asks.session.State())
		if err != nil {
			return reworded(err)
		}
	}
}

// tell tells the peer why this side gives up, and lets it read that. A peer that has given up by itself need not.
func (c *conversation) tell(reason error) {
	if _, aborted := errors.AsType[*native.PeerAborted](reason); aborted || errors.Is(reason, ErrLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	message, err := c.answers.session.Refuse(nil, service.Refusal{
		Code: wire.AbortCode(exit.Code(reason)), Text: reason.Error(), Final: true,
	})
	if err == nil { // else this session has failed, and has told the peer
		err = c.transmit(ctx, &c.answers, message)
	}
	if err != nil {
		c.options.Log.Debug().Err(err).Msg("could not report the failure to the peer")
	}
	for ctx.Err() == nil { // whatever the peer sends
		received, err := c.conn.Recv(ctx)
		if err != nil {
			return
		}
		c.asks.trace.Received(received, c.asks.session.State())
		if wire.TypeOf(received) == wire.TypeRefused {
			return
		}
	}
}

// awaitDisconnect lets the host, which disconnects, read the DPU's last message.
func (c *conversation) awaitDisconnect() {
	if c.options.Side == wire.Host {
		return
	}
	select {
	case <-c.conn.Done():
	case <-time.After(job.PartingTime):
	}
}
