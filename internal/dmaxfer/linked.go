package dmaxfer

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Link is what a transfer has of a connection that exists before it and after it.
type Link struct {
	// Conn has the messages of this transfer only, and ends with it. Close ends this side's part: nothing follows from
	// here. Done is closed when either side has closed; what the peer sent before is still received.
	Conn comch.Conn

	// Memory is the connection's, usually a window.KeptMemory, which keeps the window for the next transfer. It
	// is used by one transfer at a time.
	Memory window.Memory

	// Use is what File is to this side: job.SourceUse on the side that sends, job.TargetUse on the other one. The peer
	// knows it, and its Link has the other value.
	Use job.Use

	PeerName string // what messages call the peer's file, such as "host:images/disk.raw"; empty: the peer's
	Version  uint8  // of the native protocol, as both sides have agreed; 0: the latest
}

// RunLinked carries out one transfer in the native protocol over a connection that goes on to exist, with a direction
// that both sides know. It closes l.Conn before it returns, in any case; the peer is done with this side's window when
// it has closed its end, too. Side, File and FS of the Options are this side's. Overwrite counts on the side that
// receives; Representor, Wait, MaxDuration and ReferenceOnly have no effect. A File of "-" is a stream, so the path of
// a peer must not be passed as that.
//
// RunLinked keeps the promises of Run. After an error that is a job.ErrHung the connection must not be used for
// another transfer. After other errors it may, if the peer closes its end.
func RunLinked(ctx context.Context, o Options, l Link) (job.Summary, error) {
	t := &linkedTransfer{options: o, link: l}
	defer t.close()
	if err := t.choosePaths(); err != nil {
		return job.Summary{}, t.refuse(err)
	}
	return t.run(ctx)
}

// linkedTransfer is one transfer over a connection that stays.
type linkedTransfer struct {
	options Options
	link    Link
	file    *job.LocalFile
	pair    job.Pair
}

func (t *linkedTransfer) close() {
	if err := t.link.Conn.Close(); err != nil {
		t.options.Log.Debug().Err(err).Msg("could not end the transfer on the connection")
	}
}

// choosePaths chooses the data paths, and checks what was asked for.
func (t *linkedTransfer) choosePaths() error {
	paths, err := t.link.Memory.Paths(t.options.Path)
	if err != nil {
		return err
	}
	t.options.paths = paths
	if t.options.Measure > 0 {
		return nil // chunk and depth are the largest that may be used
	}
	return t.link.Memory.Check(t.options.Chunk, t.options.Depth)
}

func (t *linkedTransfer) run(ctx context.Context) (job.Summary, error) {
	if err := t.find(ctx); err != nil {
		return job.Summary{}, t.refuse(err)
	}
	defer t.file.Close()
	config := t.config()
	for {
		session, err := t.session(config)
		if err != nil {
			return job.Summary{}, t.refuse(err)
		}
		t.options.Mirror.Begin()
		result, err := native.Run(ctx, config, session, 0)
		if !leavesPath(err, t.options.paths) {
			return result.Summary, t.explain(err)
		}
		t.options.leavePath(err)
		config = t.config()
		config.Restarted = true
	}
}

// find looks for this side's file. One that is to be received, and is there, is compared or replaced.
func (t *linkedTransfer) find(ctx context.Context) error {
	o, sends := &t.options, t.link.Use == job.SourceUse
	o.Overwrite, o.IgnoreExisting = o.Overwrite && !sends, o.IgnoreExisting && !sends
	if o.Measure > 0 {
		t.file = measuredFile(o.Measure, sends)
		t.pair = job.Pair{Source: t.file.Path, Target: t.file.Path}
		return nil
	}
	file, err := o.findAs(ctx, t.link.Use)
	if err != nil {
		return err
	}
	peer := t.link.PeerName
	if peer == "" {
		peer = "the file of the " + o.Side.Other().String()
	}
	t.file, t.pair = file, job.Pair{Source: peer, Target: file.Path}
	if sends {
		t.pair = job.Pair{Source: file.Path, Target: peer}
	} else if file.Unsized != nil {
		file.Close()
		return t.pair.Exists()
	}
	return nil
}

func (t *linkedTransfer) config() role.Config {
	c := t.options.native(t.file, t.link.Conn, t.link.Memory)
	c.Pair, c.Use, c.Kept = &t.pair, t.link.Use, true
	return c
}

func (t *linkedTransfer) session(c role.Config) (*protocol.Session, error) {
	version := t.link.Version
	if version == 0 {
		version = protocol.Supported.Max
	}
	return protocol.New(c.Side, version, c.Hello(), wire.Limits{
		MaxMessage: t.link.Conn.MaxMessage(), MaxFileSize: maxFileSize,
	})
}

// refuse tells the peer why this side cannot start, and returns that.
func (t *linkedTransfer) refuse(failed error) error {
	t.file, t.options.paths = &job.LocalFile{}, job.EveryPath
	c := t.config()
	if session, err := t.session(c); err == nil {
		native.Tell(c, session, failed)
	}
	return failed
}

// explain names both files in an error about what they are.
func (t *linkedTransfer) explain(err error) error {
	if _, explained := errors.AsType[*job.Error](err); explained {
		return err
	}
	sends := t.link.Use == job.SourceUse
	switch {
	case errors.Is(err, wire.ErrBothHaveFile):
		return t.pair.Exists()
	case errors.Is(err, wire.ErrKindMismatch) && t.file.Directory == sends:
		return t.pair.DirectoryForFile()
	case errors.Is(err, wire.ErrKindMismatch):
		return t.pair.FileForDirectory()
	case errors.Is(err, wire.ErrTreeStream) && t.file.Directory == sends:
		return t.pair.DirectoryForStream()
	case errors.Is(err, wire.ErrTreeStream):
		return t.pair.FileForDirectory()
	case errors.Is(err, wire.ErrNeitherHasFile) && t.file.Stream:
		return t.pair.StreamForStream()
	}
	return t.file.Explain(t.options.Side, err)
}
