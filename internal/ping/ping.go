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
	"github.com/dma-copy/dma-copy/internal/negotiate"
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
	Side        negotiate.Side
	Device      *doca.Device // a host function on the host, a function of the DPU there
	Representor string       // on the DPU: the host function to serve, as Device.OpenRepresentor takes it
	Text        string       // for the other side's user, at most negotiate.MaxPingText bytes; may be empty
	Count       uint32       // of this side's round trips, 1 to negotiate.MaxPings
	Size        uint32       // bytes of their payload, at most negotiate.MaxPingSize
	Path        PathChoice
	Wait        time.Duration // for the peer to appear and be free
	IdleTimeout time.Duration // without a message of the peer
	Log         zerolog.Logger
	Notify      func(Event)     // called by one goroutine at a time, which waits for it
	ExitCode    func(error) int // of this program after an error, for the peer
}

// Event is something that the user may want to know when it happens: a Connected or a Text.
type Event interface{ event() }

// Connected reports the peer, and the path of the round trips.
type Connected struct {
	Version int // of the ping protocol
	Fast    bool
}

// Text is the text of the other side, any bytes. It may be empty.
type Text struct {
	From negotiate.Side
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
	if o.Side == negotiate.Host {
		return call(ctx, o)
	}
	conn, disconnect, err := comch.Offer{
		Device: o.Device, Representor: o.Representor, Names: []string{negotiate.PingServerName},
		Busy: func() {
			o.Log.Info().Str("representor", o.Representor).
				Msg("waiting for another dma-copy ping that serves the representor to end")
		},
	}.AcceptOne(ctx, comch.Within(o.Wait))
	if err != nil {
		return Summary{}, err
	}
	return newConversation(o, conn).run(ctx, disconnect)
}

// call is Run on the host: it connects until a DPU answers.
func call(ctx context.Context, o Options) (Summary, error) {
	dialer := comch.NewDialer(o.Device, negotiate.PingServerName, comch.Within(o.Wait))
	level := zerolog.InfoLevel
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c := newConversation(o, conn)
		var summary Summary
		if summary, err = c.run(ctx, conn.Close); !turnedAway(err) {
			return summary, err
		}
		o.Log.WithLevel(level).Msg("the DPU closed the connection without sending anything, retrying: " +
			"it may be serving another host")
		level = zerolog.DebugLevel // after the first time
		conn, err = dialer.Redial(ctx)
	}
	return Summary{}, err
}

// turnedAway reports whether a host lost the DPU before that had sent anything: the host may retry.
func turnedAway(err error) bool {
	failed, is := errors.AsType[*negotiate.Error](err)
	return is && failed.State == negotiate.AwaitGreeting && errors.Is(failed, negotiate.ErrPingLost)
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

// greeting returns what this side says first.
func (o Options) greeting() negotiate.Greeting {
	g := negotiate.Greeting{WantsFast: o.Path == OnlyFast, Count: o.Count, Size: o.Size}
	device := o.Device.Info()
	if _, err := job.ChoosePaths(job.OnlyFast, device, o.Side); err != nil {
		o.Log.Info().Err(err).Msg("no round trips over producers and consumers")
		return g
	}
	if o.Path != OnlyControl {
		g.Fast = largestPayload(device)
	}
	return g
}

// largestPayload returns how many bytes the device's producers and consumers carry besides the header.
func largestPayload(device doca.DeviceInfo) uint32 {
	largest := uint32(negotiate.MaxPingSize)
	for _, limit := range []uint32{device.Producer.MaxBuffer, device.Consumer.MaxBuffer} {
		if limit > 0 { // 0 is not known
			largest = min(largest, limit-negotiate.PingHeader)
		}
	}
	return largest
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
