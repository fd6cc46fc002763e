package dmaxfer

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// call is Run on the host: it connects until a DPU answers.
func call(ctx context.Context, o Options, file *job.LocalFile) (job.Summary, error) {
	dialer := comch.NewDialer(o.Device, reference.ServerName, comch.Within(o.Wait))
	level := zerolog.InfoLevel
	conn, err := dialer.Dial(ctx)
	for err == nil {
		var summary job.Summary
		summary, err = transferOver(ctx, o, file, conn, conn.Close)
		switch {
		case turnedAway(err):
			o.Log.WithLevel(level).Msg("the DPU closed the connection without sending anything, retrying: " +
				"it may be serving another host")
			level = zerolog.DebugLevel // after the first time
		case leavesPath(err, o.paths):
			o.leavePath(err)
		default:
			return summary, err
		}
		conn, err = dialer.Redial(ctx)
	}
	return job.Summary{}, err
}

// leavesPath reports whether the transfer ended because the window is not within reach, before any content was
// transferred, and can be made on another path.
func leavesPath(err error, p job.Paths) bool {
	if _, mayFallBack := p.MayFallBack(); !mayFallBack {
		return false
	}
	aborted, is := errors.AsType[*native.PeerAborted](err)
	return errors.Is(err, job.ErrOtherPath) || is && aborted.Code == wire.AbortOtherPath
}

// leavePath has the next attempt use another path, for a reason.
func (o *Options) leavePath(reason error) {
	path, _ := o.paths.MayFallBack()
	if path == wire.PathDMA {
		o.Log.Warn().Err(reason).
			Msg("the DPU may not import the host's memory: copying over producers and consumers instead")
	} else {
		o.Log.Warn().Err(reason).Stringer("data_path", path).
			Msg("the memory of the other machine is not within reach: copying on another path instead")
	}
	o.paths = o.paths.Without(path)
	if o.Progress != nil {
		o.Progress.Restart()
	}
}

// turnedAway reports whether a host lost the DPU before that had answered: nothing was agreed, so the host may retry.
func turnedAway(err error) bool {
	failed, is := errors.AsType[*wire.Error](err)
	return is && failed.State == reference.AwaitDirection && errors.Is(failed, wire.ErrPeerLost)
}

// serve is Run on the DPU: it waits until it may serve the representor, and then for the first host.
func serve(ctx context.Context, o Options, file *job.LocalFile) (job.Summary, error) {
	wait := comch.Within(o.Wait)
	for {
		conn, disconnect, err := offer(o).AcceptOne(ctx, wait)
		if err != nil {
			return job.Summary{}, err
		}
		summary, err := transferOver(ctx, o, file, conn, disconnect)
		if !leavesPath(err, o.paths) {
			return summary, err
		}
		o.leavePath(err)
	}
}

// offer is what the DPU offers to its host. It says that it waits for another process.
func offer(o Options) comch.Offer {
	return comch.Offer{
		Device: o.Device, Representor: o.Representor, Names: []string{reference.ServerName},
		Busy: func() {
			o.Log.Info().Str("representor", o.Representor).
				Msg("waiting for another dma-copy that serves the representor to end")
		},
	}
}

// transferOver makes the transfer with the peer, and then ends the connection.
func transferOver(ctx context.Context,
	o Options, file *job.LocalFile, conn comch.Conn, disconnect func() error,
) (job.Summary, error) {
	o.Log.Debug().Int("max_message", conn.MaxMessage()).Msg("connection made")
	summary, err := peer{o, file, conn, window.NewMemory(o.Device, o.Side, conn)}.transfer(ctx)
	closeErr := disconnect()
	o.Log.Debug().Err(closeErr).Msg("connection ended")
	if err == nil && closeErr != nil {
		o.Log.Warn().Err(closeErr).Msg("the control channel did not close cleanly")
	}
	return summary, err
}

// noticeWait is how long a side that cannot start looks for a peer that waits for it. A waiting host tries to connect
// several times within it.
const noticeWait = 500 * time.Millisecond

// TellPeer tells a peer that is already waiting why this side cannot start, so that the peer ends with the same exit
// code instead of waiting; in the reference protocol it can only be told that this side failed. TellPeer returns after
// half a second if there is no peer, or another process serves the representor, and at the end of ctx. If no peer can
// be told, that is not reported as a failure.
func TellPeer(ctx context.Context, o Options, failed error) {
	looking, cancel := context.WithTimeout(ctx, noticeWait)
	defer cancel()
	conn, disconnect, err := meetWaiting(looking, o)
	if err != nil {
		o.Log.Debug().Err(err).Msg("could not report the failure to a peer")
		return
	}
	o.paths = job.EveryPath
	peer{o, &job.LocalFile{}, conn, window.NewMemory(o.Device, o.Side, conn)}.refuse(ctx, failed)
	_ = disconnect() // why this side cannot start is what counts
}

// meetWaiting connects to a peer that looks for this side, until ctx ends.
func meetWaiting(ctx context.Context, o Options) (comch.Conn, func() error, error) {
	if o.Side == wire.DPU {
		alone := offer(o)
		alone.Busy = nil
		return alone.AcceptOne(ctx, comch.Within(noticeWait))
	}
	conn, err := comch.DialOnce(ctx, o.Device, reference.ServerName)
	if err != nil {
		return nil, nil, err
	}
	return conn, conn.Close, nil
}
