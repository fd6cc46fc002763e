package reference

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
)

// errUnexpected ends a copy during which the peer sends a message, which can only report a failure.
var errUnexpected = errors.New("unexpected message from the peer during the copy")

// copyWatched runs the copy while listening to the peer: a message or the end of the connection ends the copy.
func (t *Transfer) copyWatched(ctx context.Context, e protocol.Export) error {
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
	err = t.do(copying, "copy the file", t.config.IdleTimeout, func(ctx context.Context) error {
		return t.copyFile(ctx, e, cut)
	})
	if job.MayFollowLoss(err) {
		t.awaitLoss()
	}
	cancel(nil)
	<-listening
	return t.judge(ctx, err)
}

// cut chooses how the file is cut into chunks, unless it is empty.
func (t *Transfer) cut() (shape, error) {
	if t.outcome.Summary.Size == 0 {
		return shape{}, nil
	}
	cut, err := chooseShape(t.config.Device, t.config.Chunk, t.config.Depth, t.outcome.Summary.Size)
	t.outcome.Summary.Chunk, t.outcome.Summary.Depth = cut.chunk, cut.depth
	return cut, err
}

// listen owns t.early until it returns. A message that is there already counts like one that arrives.
func (t *Transfer) listen(ctx context.Context, cancel context.CancelCauseFunc) {
	var defect error
	defer func() {
		if defect != nil {
			cancel(defect)
		}
	}()
	defer job.Recover(&defect)
	message, err := t.early, error(nil)
	if message == nil {
		message, err = t.config.Conn.Recv(ctx)
	}
	switch {
	case err == nil:
		t.early = message
		cancel(errUnexpected)
	case errors.Is(err, comch.ErrPeerLost):
		cancel(err)
	}
}

func (t *Transfer) awaitLoss() {
	select {
	case <-t.config.Conn.Done():
	case <-time.After(job.LossNotice):
	}
}

// judge decides what ended a copy: a message of the peer, its loss, or what the copy itself reports. A failure of the
// peer counts even if the last byte was copied before it.
func (t *Transfer) judge(ctx context.Context, err error) error {
	if message := t.early; message != nil {
		t.early = nil
		if reported := t.take(ctx, message); reported != nil {
			return reported
		}
	}
	select {
	case <-t.config.Conn.Done():
		return t.session.Disconnected()
	default:
	}
	if errors.Is(err, doca.CodeIOFailed) {
		return job.NewError(job.ErrCopy, err, "check the host's error message and the device",
			"the DMA engine failed: %v", err)
	}
	return err
}

// copyFile moves the bytes between the file and the host's memory.
func (t *Transfer) copyFile(ctx context.Context, e protocol.Export, cut shape) (err error) {
	size := t.outcome.Summary.Size
	if size == 0 {
		return nil
	}
	remote, err := t.config.Device.Import(e.Descriptor, e.Address, size)
	if err != nil {
		return fmt.Errorf("importing the host's memory: %w", err)
	}
	defer closing(&err, remote)
	slots, err := t.config.Device.Alloc(int64(cut.depth+fileWorkers)*cut.chunk, doca.LocalWrite)
	if err != nil {
		return fmt.Errorf("registering the window: %w", err)
	}
	defer closing(&err, slots)
	engine, err := t.config.Device.NewEngine(cut.depth)
	if err != nil {
		return fmt.Errorf("starting the DMA engine: %w", err)
	}
	defer closing(&err, engine) // first of the three: nothing may be freed while it copies
	t.config.Log.Debug().Int64("chunk", cut.chunk).Int("depth", cut.depth).Msg("window opened")
	return t.runPipeline(ctx, pipelineConfig{
		engine: engine, slots: slots, remote: remote, size: size, chunk: cut.chunk,
	})
}

// closing closes what a copy has used. The first error is the one that counts.
func closing(err *error, c interface{ Close() error }) {
	if closeErr := c.Close(); *err == nil {
		*err = closeErr
	}
}

// runPipeline copies between the file and the host's memory, in the direction of the transfer.
func (t *Transfer) runPipeline(ctx context.Context, c pipelineConfig) error {
	if t.sends() {
		c.route, c.file = sendingRoute, t.config.File.Source.ReadAt
	} else {
		c.route, c.file = receivingRoute, t.target.WriteAt
	}
	c.moved = t.config.Progress.ChunkMoved
	t.config.Progress.Enter(job.Moving)
	t.config.Log.Info().Int64("chunk", c.chunk).Int("depth", c.engine.Depth()).Msg("copying")
	p := newPipeline(c)
	t.now.note(func() { t.now.copying = p })
	defer t.now.note(func() { t.now.copying = nil })
	return p.run(ctx)
}
