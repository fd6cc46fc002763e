package reference

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Config is one transfer with one peer. The zero value of a limit is no limit.
type Config struct {
	Side        wire.Side
	Conn        comch.Conn
	Device      *doca.Device // nil if no byte can move
	File        *job.LocalFile
	Native      *native.Hello // what to say in the native protocol; nil: speak only this one
	Chunk       int64         // bytes; 0: chosen
	Depth       int           // chunks in flight; 0: chosen
	MaxFileSize uint64        // bytes of a file that the peer announces
	MaxBytes    int64         // of the file, by the user's wish
	Expect      *digest.Sum   // makes this protocol impossible, because it has no digests
	DryRun      bool          // makes it impossible, too: it can only copy
	Word        native.Word   // likewise, unless it is zero: no message has one
	Backup      bool          // keep what is replaced as NAME~
	IdleTimeout time.Duration
	Log         zerolog.Logger
	Progress    *job.Progress
	Notify      func(job.Event) // may be nil
}

// Outcome is what a conversation has come to.
type Outcome struct {
	Summary job.Summary

	// Native is not nil if the peer speaks the native protocol: the conversation goes on in this session, which has not
	// been started. If Run failed, it is there to tell the peer why.
	Native *native.Session
	// HostSize is, with Native on the DPU, how many bytes the host's file has according to its first message, which may
	// be wrong; 0 without a file.
	HostSize uint64
}

// Transfer is one file with one peer. One goroutine owns it.
type Transfer struct {
	config    Config
	session   *protocol.Session
	offer     *native.Offer // what the session offers, if Config.Native is set
	trace     job.Trace     // of the session's messages
	agreement protocol.Agreement
	calls     job.Calls
	now       standstill
	partial   *disk.Partial // of a receiver, set by the call that opens it; released after all calls have returned
	target    *disk.Partial // the same while it is preallocated and its final rename has not begun; otherwise nil
	memory    *fileMemory   // of the host, from the agreement until it is released
	committed bool          // the target of a receiver
	early     []byte        // a message that arrived before it was asked for
	started   time.Time
	outcome   Outcome
}

// New returns a Transfer that has not begun.
func New(c Config) *Transfer {
	local := c.File.Local()
	local.Marked = true
	offer := &native.Offer{}
	if c.Native != nil {
		offer.Own, local.Native = *c.Native, offer
	}
	limits := wire.Limits{MaxMessage: c.Conn.MaxMessage(), MaxFileSize: c.MaxFileSize}
	if c.Progress == nil {
		c.Progress = &job.Progress{}
	}
	return &Transfer{
		config: c, session: protocol.New(c.Side, local, limits), offer: offer,
		trace: job.Trace{Log: c.Log, Protocol: "reference"}, started: time.Now(),
	}
}

// Run opens the conversation and, unless the peer speaks the native protocol, follows it to its end. It tells the peer
// about every failure that can still reach the peer, and releases what the transfer held.
func (t *Transfer) Run(ctx context.Context) (Outcome, error) {
	return t.end(t.lead(ctx, func() error { return t.open(ctx) }))
}

// Resume is Run for a peer that only seemed to speak the native protocol, after the native session has returned to it.
func (t *Transfer) Resume(ctx context.Context) (Outcome, error) {
	t.outcome = Outcome{}
	return t.end(t.lead(ctx, func() error { return t.act(ctx, t.session.Resumed()) }))
}

// Refuse tells a peer that has just connected why this side cannot start. A peer that speaks the native protocol is
// left to the caller: it is the Outcome's.
func (t *Transfer) Refuse(ctx context.Context, failed error) Outcome {
	if t.send(ctx, t.session.Start()) == nil {
		_ = t.giveUp(ctx, failed) // why this side cannot start is what counts
	}
	return t.outcome
}

func (t *Transfer) end(err error) (Outcome, error) {
	if !t.release() {
		err = job.Hung(err)
	}
	return t.outcome, err
}

func (t *Transfer) lead(ctx context.Context, begin func() error) error {
	endDescription := t.config.Progress.Describe(t.describe)
	err := t.afterSuccess(ctx, t.converse(ctx, begin))
	endDescription()
	if errors.Is(err, job.ErrIdle) {
		job.LogStall(&t.config.Log, t.describe(ctx))
	}
	if err != nil {
		err = t.giveUp(ctx, err)
	}
	t.logEnd(err)
	return err
}

// converse follows the session to its end, or to the native protocol. Steps that cannot be undone are not interrupted:
// the peer gets a little time for its last message.
func (t *Transfer) converse(ctx context.Context, begin func() error) error {
	late := job.Overtime(ctx, job.PartingTime)
	if err := begin(); err != nil {
		return err
	}
	for t.session.State() != protocol.Done && t.session.State() != protocol.HandedOver {
		waiting := ctx
		if t.reportedSuccess() {
			waiting = late
		}
		message, err := t.receive(waiting)
		if errors.Is(err, comch.ErrPeerLost) {
			err = t.session.Disconnected()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := t.take(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transfer) open(ctx context.Context) error {
	err := t.send(ctx, t.session.Start())
	if errors.Is(err, comch.ErrPeerLost) {
		return t.lastMessage(ctx)
	}
	return err
}

// lastMessage keeps what a peer sent that could not be sent this side's first message: it may be why the peer left. A
// channel that fails to send need not notice that it is broken, so a silent one is soon given up.
func (t *Transfer) lastMessage(ctx context.Context) error {
	parting, cancel := context.WithTimeout(ctx, job.PartingTime)
	defer cancel()
	message, err := t.receive(parting)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // the channel may report the loss first
	}
	if err != nil {
		return t.session.Disconnected()
	}
	t.early = message
	return nil
}

// take lets the session judge a message, answers it, and does what it asks for.
func (t *Transfer) take(ctx context.Context, message []byte) error {
	step, err := t.hear(message)
	if err != nil {
		if step.Reply != nil {
			t.tell(step.Reply)
		}
		return err
	}
	if err := t.send(ctx, step.Reply); err != nil {
		return err
	}
	return t.act(ctx, step)
}

// act does what the session asks for.
func (t *Transfer) act(ctx context.Context, step protocol.Step) error {
	switch step.Event {
	case protocol.ToNative:
		t.handOver(step)
	case protocol.Agreed:
		return t.prepare(ctx, step.Agreement)
	case protocol.Exported:
		if t.agreement.Protocol == 0 {
			if err := t.prepare(ctx, step.Agreement); err != nil {
				return err
			}
		}
		return t.copyAndReport(ctx, step.Export)
	case protocol.Finished:
		return t.conclude(ctx)
	}
	return nil
}

func (t *Transfer) handOver(step protocol.Step) {
	t.outcome.Native, t.outcome.HostSize = t.offer.Session, step.Size
}

// giveUp tells the peer of a failure, if that can still reach it, and returns the cause behind it.
func (t *Transfer) giveUp(ctx context.Context, err error) error {
	if t.session.State() == protocol.HandedOver {
		return t.explain(ctx, err) // the peer has been told
	}
	if t.awaitNative(err) {
		return err
	}
	if notice, _ := t.session.Finish(false); notice != nil {
		t.tell(notice)
	}
	if t.config.Side == wire.DPU || t.calls.Hung() || t.memory != nil {
		t.linger()
	}
	return t.explain(ctx, err)
}

// awaitNative is called by a side that gives up before the peer has said which protocol it speaks, and reports whether
// that is the native one. The session is then handed over, for the caller to tell the peer the cause. It does not wait
// if the cause is the peer's own silence. In the reference protocol there is only STATUS(0), which is left to giveUp
// unless the session answers with it.
func (t *Transfer) awaitNative(err error) bool {
	silent := errors.Is(err, job.ErrIdle) && !errors.Is(err, job.ErrHung)
	if t.session.State() != protocol.AwaitDirection || t.config.Native == nil || silent {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	message, recvErr := t.config.Conn.Recv(ctx)
	if recvErr != nil {
		return false
	}
	step, recvErr := t.hear(message)
	native := recvErr == nil && step.Event == protocol.ToNative
	if step.Reply != nil && (native || recvErr != nil) {
		t.tell(step.Reply)
	}
	if native {
		t.handOver(step)
	}
	return native
}

func (t *Transfer) sends() bool { return t.agreement.Sender == t.config.Side }

// reportedSuccess reports whether the DPU has reported success, which it cannot take back.
func (t *Transfer) reportedSuccess() bool { return t.session.Reached() == protocol.AwaitDisconnect }
