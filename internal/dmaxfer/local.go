package dmaxfer

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// localMessage is the size of the largest message between the sides of a local copy, in bytes: the size of the largest
// entry. Larger ones would have more files in a pack than a process with few descriptors can stage.
var localMessage = protocol.MaxEntrySize(wire.MaxName, wire.MaxLink)

// RunLocal copies o.File to target by the DMA engine of o.Device, with both sides of a transfer in this process: the
// host of the transfer sends, and the DPU receives. o.Overwrite says whether target may be replaced; without it, a file
// that exists is only compared, and to a directory is added what is missing. Side, Representor, Path, Wait, MaxDuration
// and ReferenceOnly have no effect. The events are the sender's, and the receiver's where only it knows them; Progress
// is the receiver's. Otherwise RunLocal keeps the promises of Run.
func RunLocal(ctx context.Context, o Options, target string) (job.Summary, error) {
	if err := job.CheckLocal(o.Device.Info()); err != nil {
		return job.Summary{}, err
	}
	if err := job.CheckLimits(o.Device, wire.DPU, o.Chunk, o.Depth); err != nil {
		return job.Summary{}, err
	}
	files, err := findLocal(ctx, o, target)
	if err != nil {
		return job.Summary{}, err
	}
	defer files.close()
	c, err := newLocalCopy(o, files)
	if err != nil {
		return job.Summary{}, err
	}
	return c.run(ctx)
}

// localCopy is both sides of a transfer within this process.
type localCopy struct {
	options          Options
	files            localFiles
	sender, receiver localSide
}

// localSide is one of them.
type localSide struct {
	config   role.Config
	session  *protocol.Session
	hostSize uint64 // on the DPU: bytes of the host's file
}

func newLocalCopy(o Options, files localFiles) (*localCopy, error) {
	if o.Progress == nil {
		o.Progress = &job.Progress{}
	}
	o.paths = job.PathsOf(wire.PathDMA)
	host, dpu := comch.Pipe(localMessage)
	memory, events := window.NewLocalMemory(o.Device), &localEvents{notify: o.Notify}
	c := &localCopy{options: o, files: files}

	sends, receives := o, o
	sends.Side, sends.Notify = wire.Host, events.ofSender
	sends.Progress = job.NewProgressWithin(o.Progress)
	sends.Log, receives.Log = o.Log.Hook(roleHook(job.RoleOf(true))), o.Log.Hook(roleHook(job.RoleOf(false)))
	receives.Side, receives.Notify = wire.DPU, events.ofReceiver
	var err error
	pair := files.pair()
	if c.sender, err = newLocalSide(sends.native(files.source, host, memory), &pair, job.SourceUse); err != nil {
		return nil, err
	}
	if c.receiver, err = newLocalSide(receives.native(files.target, dpu, memory), &pair, job.TargetUse); err != nil {
		return nil, err
	}
	c.sender.config.StallLog = o.Log // either side may be the one that gives up
	c.receiver.hostSize = files.source.Local().Size
	return c, nil
}

// roleHook is the role of a side of a local copy in its log. Lines at DEBUG and TRACE name it. Others are about both
// sides, so the sender's are left out.
type roleHook string

// Run implements zerolog.Hook.
func (r roleHook) Run(line *zerolog.Event, level zerolog.Level, _ string) {
	switch {
	case level < zerolog.InfoLevel:
		line.Str("role", string(r))
	case string(r) == job.RoleOf(true):
		line.Discard()
	}
}

func newLocalSide(c role.Config, pair *job.Pair, use job.Use) (localSide, error) {
	c.Local, c.Pair, c.Use = true, pair, use
	session, err := protocol.New(c.Side, protocol.Supported.Max, c.Hello(), wire.Limits{
		MaxMessage: localMessage, MaxFileSize: maxFileSize,
	})
	return localSide{config: c, session: session}, err
}

// localEnd is what has become of a side.
type localEnd struct {
	side    wire.Side
	summary job.Summary
	err     error
}

// run runs both sides. The user interrupts the receiver, which knows what is committed, and tells the sender why.
func (c *localCopy) run(ctx context.Context) (job.Summary, error) {
	ended := make(chan localEnd, 2)
	go func() { ended <- c.sender.run(context.WithoutCancel(ctx)) }()
	go func() { ended <- c.receiver.run(ctx) }()
	first, second := <-ended, <-ended
	sender, receiver := first, second
	if first.side == wire.DPU {
		sender, receiver = second, first
	}
	return c.summary(sender.summary, receiver.summary), c.explain(rootCause(first, second))
}

// run runs one side. Its end ends the connection, and thus the other side.
func (s localSide) run(ctx context.Context) localEnd {
	result, err := native.Run(ctx, s.config, s.session, s.hostSize)
	_ = s.config.Conn.Close() // never fails within a process
	return localEnd{s.config.Side, result.Summary, err}
}

// rootCause returns why the copy failed, given both ends in their order: not what one side has only learnt from the
// other. A sender's doubt about a commit does not count, because the receiver knows.
func rootCause(first, second localEnd) error {
	cause := first.err
	switch {
	case first.err != nil && !followsPeer(first.err):
	case second.err != nil && !followsPeer(second.err):
		cause = second.err
	case first.side == wire.Host:
		cause = second.err
	}
	hung := errors.Is(first.err, job.ErrHung) || errors.Is(second.err, job.ErrHung)
	if hung && !errors.Is(cause, job.ErrHung) {
		return job.Hung(cause)
	}
	return cause
}

// followsPeer reports whether a side failed because the other one did.
func followsPeer(err error) bool {
	if _, told := errors.AsType[*protocol.PeerAborted](err); told {
		return true
	}
	for _, sign := range []error{
		comch.ErrPeerLost, wire.ErrPeerLost, wire.ErrOutcomeUnknown, job.ErrPeerIdle,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// explain words an error for a copy whose sides the user does not see.
func (c *localCopy) explain(err error) error {
	switch {
	case errors.Is(err, job.ErrPeerIdle) && errors.Is(err, job.ErrHung):
		return job.Hung(job.Stalled(c.options.IdleTimeout))
	case errors.Is(err, job.ErrPeerIdle):
		return job.Stalled(c.options.IdleTimeout)
	}
	return err
}

// summary is the receiver's, who knows what has become of a file, with the outcomes of all entries, which the sender
// knows.
func (c *localCopy) summary(sender, receiver job.Summary) job.Summary {
	s := receiver
	s.Sent, s.Path, s.Target, s.Tree = true, c.files.source.Path, c.files.target.Path, sender.Tree
	s.Messages, s.Unconfirmed = 0, ""
	s.Shares = c.options.Progress.Sample().Shares.WithoutPeer()
	return s
}

// localEvents passes the events of both sides on, each once.
type localEvents struct {
	mu     sync.Mutex
	notify func(job.Event) // may be nil
}

// ofSender passes on what both sides know, and what becomes of the entries, which the receiver knows in part.
func (l *localEvents) ofSender(e job.Event) {
	switch known := e.(type) {
	case job.PeerKnown:
		known.Software = "" // it is this program
		l.pass(known)
	case job.Planned, job.FileDone, job.Warned:
		l.pass(e)
	}
}

// ofReceiver passes on what only the receiver knows, and chunks that both sides see again.
func (l *localEvents) ofReceiver(e job.Event) {
	switch e.(type) {
	case job.Retransmitted, job.Kept, job.Warned:
		l.pass(e)
	}
}

func (l *localEvents) pass(e job.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notify != nil {
		l.notify(e)
	}
}
