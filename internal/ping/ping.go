package ping

import (
	"context"
	"errors"
	"slices"
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

// PathChoice is which paths the user permits for the round trips.
type PathChoice uint8

// The choices.
const (
	AnyPath     PathChoice = iota // what the other side wants, otherwise the control channel
	OnlyControl                   // the control channel
	OnlyFast                      // producers and consumers
)

// Options describe what one side does.
type Options struct {
	Side        wire.Side
	Device      *doca.Device  // a host function on the host, a function of the DPU there
	Representor string        // on the DPU: the host function to serve, as Device.OpenRepresentor takes it
	Text        string        // for the other side's user, at most service.MaxPingText bytes; may be empty
	Count       uint32        // of this side's round trips, 1 to service.MaxPings
	Size        uint32        // bytes of their payload, at most service.MaxPingSize
	Path        PathChoice    // OnlyFast on one side is that of both
	Wait        time.Duration // for the peer to appear and be free
	IdleTimeout time.Duration // without a message of the peer
	Log         zerolog.Logger
	Notify      func(Event) // called by one goroutine at a time, which waits for it
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
// told why this side gives up, and ends with the same exit code. Errors are those of negotiate, comch and doca,
// *job.Error, and job.ErrHung besides if a call into the device did not return; then the device must not be closed.
func Run(ctx context.Context, o Options) (Summary, error) {
	o.Log.Info().Stringer("side", o.Side).Str("device", o.Device.Info().PCIAddress).Msg("waiting for the peer")
	if o.Side == wire.Host {
		return call(ctx, o)
	}
	conn, disconnect, err := comch.Offer{
		Device: o.Device, Representor: o.Representor, Names: []string{service.PingServerName},
		Busy: func() {
			o.Log.Info().Str("representor", o.Representor).
				Msg("waiting for another dma-copy ping that serves the representor to end")
		},
	}.AcceptOne(ctx, comch.Within(o.Wait))
	if err != nil {
		return Summary{}, err
	}
	c, err := newConversation(o, conn)
	if err != nil {
		return Summary{}, errors.Join(err, disconnect())
	}
	return c.run(ctx, disconnect)
}

// call is Run on the host: it connects until a DPU answers.
func call(ctx context.Context, o Options) (Summary, error) {
	dialer := comch.NewDialer(o.Device, service.PingServerName, comch.Within(o.Wait))
	level := zerolog.InfoLevel
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c, refused := newConversation(o, conn)
		if refused != nil {
			return Summary{}, errors.Join(refused, conn.Close())
		}
		summary, failed := c.run(ctx, conn.Close)
		if turnedAway := errors.Is(failed, ErrLost) && c.heard.Load() == 0; !turnedAway {
			return summary, failed
		}
		o.Log.WithLevel(level).Msg("the DPU closed the connection without sending anything, retrying: " +
			"it may be serving another host")
		level = zerolog.DebugLevel // after the first time
		conn, err = dialer.Redial(ctx)
	}
	return Summary{}, err
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

// Payload returns the payload of a PING, in memory that is reused. That of the next round trip differs, so that an old
// buffer is noticed.
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
	if o.Path == OnlyControl {
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

// ErrLost is the end of the connection before that of the round trips.
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

// reworded returns the error of a peer that has refused as that of one that gave up: in a ping, no side is a daemon.
func reworded(err error) error {
	if refused, is := errors.AsType[*service.Refusal](err); is {
		return &native.PeerAborted{Code: refused.Code, Text: refused.Text}
	}
	return err
}

// silence is the error of a peer that sends nothing.
func (o Options) silence(patience time.Duration) error {
	return job.NewError(job.ErrIdle, nil, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s", o.Side.Other(), patience)
}

// mayFollowLoss reports whether an error can be the consequence of a peer that is gone: the device notices that in many
// ways, and before the control channel does.
func mayFollowLoss(err error) bool {
	_, ofDevice := errors.AsType[*doca.Error](err)
	return ofDevice || job.MayFollowLoss(err) || errors.Is(err, doca.ErrDisconnected) || errors.Is(err, comch.ErrClosed)
}
