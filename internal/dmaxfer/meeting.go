package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how the two sides find each other.

// call is the host's run: it connects until a DPU answers.
func call(ctx context.Context, o Options, p *place) (Summary, error) {
	dialer := comch.NewDialer(o.Device, negotiate.ServerName, comch.Within(o.Wait))
	level := zerolog.InfoLevel
	conn, err := dialer.Dial(ctx)
	for err == nil {
		var summary Summary
		if summary, err = copyOver(ctx, o, p, conn, conn.Close); !turnedAway(err) {
			return summary, err
		}
		o.Log.WithLevel(level).Msg("the DPU closed the connection without sending anything, retrying: " +
			"it may be serving another host")
		level = zerolog.DebugLevel // once is enough
		conn, err = dialer.Redial(ctx)
	}
	return Summary{}, err
}

// turnedAway reports whether a host lost the DPU before that had answered: nothing was agreed upon, so the host may try
// again.
func turnedAway(err error) bool {
	failed, is := errors.AsType[*negotiate.Error](err)
	return is && failed.State == negotiate.AwaitDirection && errors.Is(failed, negotiate.ErrPeerLost)
}

// serve is the DPU's run: it waits until it may serve the representor, and then for the first host.
func serve(ctx context.Context, o Options, p *place) (Summary, error) {
	wait := comch.Within(o.Wait)
	conn, hangUp, err := acceptOne(ctx, o, wait, func(rep *doca.Representor) (*comch.Listener, error) {
		return listen(ctx, o, rep, wait)
	})
	if err != nil {
		return Summary{}, err
	}
	return copyOver(ctx, o, p, conn, hangUp)
}

// acceptOne accepts the first host of the representor, and disconnects others until hangUp is called.
func acceptOne(
	ctx context.Context, o Options, wait comch.Wait, listen func(*doca.Representor) (*comch.Listener, error),
) (conn comch.Conn, hangUp func() error, err error) {
	rep, err := o.Device.OpenRepresentor(o.Representor)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(rep)
	if err != nil {
		return nil, nil, errors.Join(err, rep.Close())
	}
	hangUp = func() error { return errors.Join(listener.Close(), rep.Close()) }
	conn, err = listener.AcceptOnly(ctx, wait)
	if err != nil {
		return nil, nil, errors.Join(err, hangUp())
	}
	return conn, hangUp, nil
}

// listen waits for another process that serves the representor to end.
func listen(ctx context.Context, o Options, rep *doca.Representor, wait comch.Wait) (*comch.Listener, error) {
	listener, err := comch.Listen(o.Device, rep, negotiate.ServerName)
	if errors.Is(err, doca.CodeAlreadyExist) {
		o.Log.Info().Str("representor", o.Representor).
			Msg("waiting for another dma-copy that serves the representor to end")
		listener, err = comch.ListenWhenFree(ctx, o.Device, rep, negotiate.ServerName, wait)
	}
	if errors.Is(err, doca.CodeAlreadyExist) {
		return nil, fmt.Errorf("another dma-copy already serves representor %s on %s: %w",
			o.Representor, o.Device.Info().PCIAddress, err)
	}
	return listener, err
}

// copyOver makes the copy with the peer, and then ends the connection.
func copyOver(ctx context.Context, o Options, p *place, conn comch.Conn, hangUp func() error) (Summary, error) {
	t := newTransfer(o, p, conn, docaMemory{o.Device})
	err := t.run(ctx)
	if hangUpErr := hangUp(); err == nil && hangUpErr != nil {
		o.Log.Warn().Err(hangUpErr).Msg("the control channel did not close cleanly")
	}
	return t.summary, err
}

// noticeWait is how long a side that cannot start looks for a peer that waits for it. A waiting host tries to connect
// several times within it.
const noticeWait = 500 * time.Millisecond

// TellPeer tells a peer that is waiting already why this side cannot start, so that the peer ends with the same code
// instead of waiting on; in the reference's protocol it can only be told that this side failed. TellPeer returns after
// half a second if there is no peer, or another process serves the representor, and at the end of ctx. That it could
// not tell anybody is no failure.
func TellPeer(ctx context.Context, o Options, failed error) {
	looking, cancel := context.WithTimeout(ctx, noticeWait)
	defer cancel()
	conn, hangUp, err := meetWaiting(looking, o)
	if err != nil {
		o.Log.Debug().Err(err).Msg("could not report the failure to a peer")
		return
	}
	t := newTransfer(o, &place{}, conn, docaMemory{o.Device})
	if t.send(ctx, t.session.Start()) == nil {
		_ = t.giveUp(ctx, failed)
	}
	_ = hangUp() // what counts is why this side cannot start
}

// meetWaiting connects to a peer that looks for this side, until ctx ends.
func meetWaiting(ctx context.Context, o Options) (comch.Conn, func() error, error) {
	if o.Side == negotiate.DPU {
		return acceptOne(ctx, o, comch.Within(noticeWait), func(rep *doca.Representor) (*comch.Listener, error) {
			return comch.Listen(o.Device, rep, negotiate.ServerName)
		})
	}
	conn, err := comch.DialOnce(ctx, o.Device, negotiate.ServerName)
	if err != nil {
		return nil, nil, err
	}
	return conn, conn.Close, nil
}
