package ping

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Options describe what one side does.
type Options struct {
	Meeting
	Text   string      // for the other side's user, at most service.MaxPingText bytes; may be empty
	Count  uint32      // of this side's round trips, 1 to service.MaxPings
	Size   uint32      // bytes of their payload, at most service.MaxPingSize
	Notify func(Event) // called by one goroutine at a time, which waits for it

	// Path is how the payload travels: job.AnyPath as the other side wants, otherwise over the control channel, which
	// job.OnlyDMA forces; job.OnlyFast over producers and consumers, also for the other side.
	Path job.PathChoice
}

// Event is something that the user may want to know when it happens: a Connected or a Text.
type Event interface{ event() }

// Connected reports the peer.
type Connected struct {
	Version int // of the service protocol
}

// Text is the text of the other side, any bytes. It may be empty.
type Text struct {
	From wire.Side
	Text string
}

func (Connected) event() {}
func (Text) event()      {}

// Summary is the result of this side's round trips.
type Summary struct {
	Fast             bool // over producers and consumers, otherwise over the control channel
	Count            int
	Size             int // bytes of the payload
	Min, Median, P99 time.Duration
}

// Run meets the peer, and returns when both sides have made their round trips. ctx ends it with its cause. The peer is
// told why this side gives up, and ends with the same exit code. It returns the errors of negotiate, comch and doca,
// *job.Error, and job.ErrHung besides if a call into the device did not return; then the device must not be closed.
func Run(ctx context.Context, o Options) (Summary, error) {
	o.Name = service.PingServerName
	c, err := Meet(ctx, o.Meeting)
	if err != nil {
		return Summary{}, o.reworded(err)
	}
	return o.run(ctx, c)
}

// run makes the round trips of both sides, and ends the connection.
func (o Options) run(ctx context.Context, c *Conversation) (Summary, error) {
	o.Notify(Connected{Version: int(c.session.Version())})
	s := &series{Conversation: c, options: o, trips: make([]time.Duration, 0, o.Count)}
	calls := job.Calls{Slow: func(time.Duration) error { return o.silence() }}
	beat := func() native.Beat { return native.Beat{Work: c.heard.Load()} }
	err := calls.Do(ctx, o.IdleTimeout, beat, s.run)
	if calls.Hung() {
		return Summary{}, job.Hung(err) // the call may still use the connection
	}
	if err != nil {
		c.tell(err)
	}
	if closeErr := c.Close(); err == nil && closeErr != nil {
		o.Log.Warn().Err(closeErr).Msg("the control channel did not close cleanly")
	}
	if err != nil {
		return Summary{}, o.reworded(err)
	}
	summary := Summarize(s.trips)
	summary.Fast, summary.Size = s.asksFast, int(o.Size)
	return summary, nil
}

// series is the round trips of both sides over one connection.
type series struct {
	*Conversation
	options  Options
	trips    []time.Duration // of this side
	asksFast bool            // these go over producers and consumers
	opened   []*fastPath     // of both turns
}

func (s *series) run(ctx context.Context) error {
	err := s.turns(ctx, s.ask, s.answer)
	for _, fast := range s.opened {
		if closeErr := fast.close(); closeErr != nil {
			s.Log.Warn().Err(closeErr).Msg("consumer and producer did not close cleanly")
		}
	}
	return err
}

// ask makes the requests of this side.
func (s *series) ask(ctx context.Context) error {
	o, room := s.options, s.conn.MaxMessage()-service.PingHeader
	switch {
	case len(o.Text) > room:
		return tooLarge(o.Side, uint32(len(o.Text)), room, "the control channel")
	case o.Text != "":
		if _, err := s.roundTrip(ctx, service.PingText, []byte(o.Text)); err != nil {
			return err
		}
	}
	fast, err := s.wantsFast(ctx)
	if fast && err == nil {
		err = s.requestConsumer(ctx)
	} else if err == nil && int(o.Size) > room {
		err = tooLarge(o.Side, o.Size, room, "the control channel")
	}
	var payload []byte
	for err == nil && len(s.trips) < int(o.Count) {
		payload = Payload(payload, int(o.Size), len(s.trips))
		began := time.Now()
		if _, err = s.roundTrip(ctx, service.PingBytes, payload); err == nil {
			s.trips = append(s.trips, s.arrived.Sub(began))
		}
	}
	return err
}

// wantsFast reports whether a side has chosen producers and consumers. The other one refuses an empty payload then.
func (s *series) wantsFast(ctx context.Context) (bool, error) {
	if s.options.Path == job.OnlyFast {
		return true, nil
	}
	_, err := s.roundTrip(ctx, service.PingBytes, nil)
	if _, refused := errors.AsType[*service.Refusal](err); refused {
		return true, nil
	}
	return false, err
}

func (s *series) requestConsumer(ctx context.Context) error {
	fast, err := s.openFast(ctx, s.Side, s.options.Size)
	if err != nil {
		return err
	}
	own := service.Consumer{ID: fast.consumer.ID(), Size: s.options.Size}
	answer, err := s.roundTrip(ctx, service.PingConsumer, own.Append(nil))
	if err != nil {
		return err
	}
	s.fast, s.asksFast = fast, true
	return fast.connect(ctx, answer.Consumer().ID)
}

// answer implements answerer.
func (s *series) answer(ctx context.Context, p service.Ping) ([]byte, error) {
	switch {
	case p.Kind == service.PingText:
		s.options.Notify(Text{From: s.Side.Other(), Text: string(p.Payload)})
		return nil, nil // this side's text has a PING of its own
	case p.Kind == service.PingConsumer && s.fast == nil:
		peer := p.Consumer()
		fast, err := s.openFast(ctx, s.Side.Other(), peer.Size)
		if err != nil {
			return nil, err
		}
		s.fast = fast
		return service.Consumer{ID: fast.consumer.ID(), Size: peer.Size}.Append(nil), fast.connect(ctx, peer.ID)
	case p.Kind == service.PingConsumer:
		return nil, s.outOfOrder(wire.TypePing)
	case s.fast == nil && s.options.Path == job.OnlyFast:
		return nil, &service.Refusal{Code: wire.AbortDevice, Text: "this side uses producers and consumers only"}
	}
	return p.Payload, nil
}

// openFast starts consumer and producer for the payloads of a side.
func (s *series) openFast(ctx context.Context, of wire.Side, size uint32) (*fastPath, error) {
	limit := s.options.largestFast()
	if limit == 0 {
		return nil, noPath(s.Side)
	}
	if size > limit {
		return nil, tooLarge(of, size, int(limit), "producers and consumers")
	}
	fast, err := openFastPath(ctx, s.Device, s.conn, service.PingHeader+int(size))
	if err == nil {
		s.opened = append(s.opened, fast)
		s.session.Apart(size)
	}
	return fast, err
}

// Summarize returns the result of round trips that took these times, at least one.
func Summarize(trips []time.Duration) Summary {
	slices.Sort(trips)
	return Summary{
		Count: len(trips), Min: trips[0], Median: percentile(trips, 50), P99: percentile(trips, 99),
	}
}

// percentile returns the smallest of the sorted values that is not below p percent of them (the nearest rank). There is
// at least one value, and p is from 1 to 100.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}

// Payload returns the payload of a PING, in memory that is reused. The payload of the next round trip differs, so that
// an old buffer is noticed.
func Payload(memory []byte, size, trip int) []byte {
	memory = slices.Grow(memory[:0], size)[:size]
	for i := range memory {
		memory[i] = byte(i + trip)
	}
	return memory
}

// largestFast returns how many bytes a payload over producers and consumers may have; 0: there are none, or they are
// not to be used.
func (o Options) largestFast() uint32 {
	device := o.Device.Info()
	if o.Path == job.OnlyDMA {
		return 0
	}
	if _, err := job.ChoosePaths(job.OnlyFast, device, o.Side); err != nil {
		o.Log.Info().Err(err).Msg("no round trips over producers and consumers")
		return 0
	}
	return largestPayload(device)
}

// largestPayload returns how many bytes the device's producers and consumers carry besides the header.
func largestPayload(device doca.DeviceInfo) uint32 {
	largest := uint32(service.MaxPingSize)
	for _, limit := range []uint32{device.Producer.MaxBuffer, device.Consumer.MaxBuffer} {
		if limit > 0 { // 0 is not known
			largest = min(largest, limit-service.PingHeader)
		}
	}
	return largest
}

// ErrLost is the end of the connection before the end of the round trips.
var ErrLost = exit.NewPeerReason(exit.Peer, "check the other side and try again",
	"the connection was lost before the last round trip",
	"the connection to the %s was lost before the last round trip")

func noPath(side wire.Side) error {
	return job.NewError(job.ErrCapability, wire.ErrNoPath,
		"leave out --path on both sides, and see what dma-copy devices lists there",
		"%s: the %s cannot or will not use producers and consumers", wire.ErrNoPath, side)
}

func tooLarge(side wire.Side, size uint32, limit int, path string) error {
	return job.NewError(job.ErrSettings, nil, "give less with --size or --text",
		"too large for a message: the %s wants %d bytes, limit %d over %s", side, size, limit, path)
}

// reworded returns an error in the words of round trips: a peer that has refused has given up, because in a ping no
// side is a daemon.
func (o Options) reworded(err error) error {
	_, told := errors.AsType[*native.PeerAborted](err)
	refused, is := errors.AsType[*service.Refusal](err)
	switch {
	case is:
		return &native.PeerAborted{Code: refused.Code, Text: refused.Text}
	case told:
	case errors.Is(err, comch.ErrPeerLost):
		return ErrLost
	case errors.Is(err, job.ErrIdle):
		return o.silence()
	}
	return err
}

// silence is the error of a peer that sends nothing.
func (o Options) silence() error {
	return job.NewError(job.ErrIdle, nil, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s", o.Side.Other(), o.IdleTimeout)
}
