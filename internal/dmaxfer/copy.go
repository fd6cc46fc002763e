package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// deathNotice is how long a failed copy waits to learn whether the peer's end is why it failed: the device notices
// before the control channel does.
const deathNotice = 500 * time.Millisecond

// errSpoke is why a copy ends when the peer says something in the middle of it; only bad news can come then.
var errSpoke = errors.New("unexpected message from the peer during the copy")

// copyWatched runs the copy while listening to the peer: a message or the end of the connection ends the copy.
func (t *transfer) copyWatched(ctx context.Context, e negotiate.Export) error {
	cut, err := t.cut()
	if err != nil {
		return err
	}
	copying, cancel := context.WithCancelCause(ctx)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		t.listen(copying, cancel)
	}()
	err = t.within(copying, t.options.IdleTimeout, func(ctx context.Context) error { return t.copyFile(ctx, e, cut) })
	if mayFollowLoss(err) {
		awaitDeath(t.conn)
	}
	cancel(nil)
	<-listening
	return t.judge(ctx, err)
}

// cut chooses how the file is copied, if there is anything in it.
func (t *transfer) cut() (shape, error) {
	if t.summary.Size == 0 {
		return shape{}, nil
	}
	cut, err := chooseShape(t.options.Device, t.options.Chunk, t.options.Depth, t.summary.Size)
	t.summary.Chunk, t.summary.Depth = cut.chunk, cut.depth
	return cut, err
}

// listen owns t.early until it returns.
func (t *transfer) listen(ctx context.Context, cancel context.CancelCauseFunc) {
	message, err := t.conn.Recv(ctx)
	switch {
	case err == nil:
		t.early = message
		cancel(errSpoke)
	case errors.Is(err, comch.ErrPeerLost):
		cancel(err)
	}
}

func awaitDeath(conn comch.Conn) {
	select {
	case <-conn.Done():
	case <-time.After(deathNotice):
	}
}

// judge decides what ended a copy: what the peer said, that it is gone, or what the copy itself reports. Bad news counts even
// if the last byte was there before it.
func (t *transfer) judge(ctx context.Context, err error) error {
	if message := t.early; message != nil {
		t.early = nil
		if spoken := t.take(ctx, message); spoken != nil {
			return spoken
		}
	}
	if peerGone(t.conn) {
		return t.session.Disconnected()
	}
	if errors.Is(err, doca.CodeIOFailed) {
		return failure(ErrCopy, err, "check the host's error message and the device", "the DMA engine failed: %v", err)
	}
	return err
}

func peerGone(conn comch.Conn) bool {
	select {
	case <-conn.Done():
		return true
	default:
		return false
	}
}

// copyFile moves the bytes between the file and the host's memory.
func (t *transfer) copyFile(ctx context.Context, e negotiate.Export, cut shape) (err error) {
	size := t.summary.Size
	if size == 0 {
		return nil
	}
	remote, err := t.options.Device.Import(e.Descriptor, e.Address, size)
	if err != nil {
		return fmt.Errorf("importing the host's memory: %w", err)
	}
	defer closing(&err, remote)
	slots, err := t.options.Device.Alloc(int64(cut.depth+fileWorkers)*cut.chunk, doca.LocalWrite)
	if err != nil {
		return fmt.Errorf("registering the window: %w", err)
	}
	defer closing(&err, slots)
	engine, err := t.options.Device.NewEngine(cut.depth)
	if err != nil {
		return fmt.Errorf("starting the DMA engine: %w", err)
	}
	defer closing(&err, engine) // first of the three: nothing may be freed while it copies
	return t.pump(ctx, windowConfig{engine: engine, slots: slots, remote: remote, size: size, chunk: cut.chunk})
}

// closing closes what a copy has used. The first error is the one that counts.
func closing(err *error, c interface{ Close() error }) {
	if closeErr := c.Close(); *err == nil {
		*err = closeErr
	}
}

// pump runs the window.
func (t *transfer) pump(ctx context.Context, c windowConfig) error {
	if t.sends() {
		c.route, c.file = sendingRoute, t.place.source.ReadAt
	} else {
		c.route, c.file = receivingRoute, t.target.WriteAt
	}
	c.moved = t.progress.pieceMoved
	t.progress.enter(Moving)
	t.options.Log.Info().Int64("chunk", c.chunk).Int("depth", c.engine.Depth()).Msg("copying")
	return newWindow(c).run(ctx)
}

func stalled(idle time.Duration) error {
	return failure(ErrIdle, nil, "check the device and the disk, or raise --idle-timeout",
		"timeout: the copy made no progress for %s", idle)
}
