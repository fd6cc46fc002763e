package native

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/receive"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/send"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Result is what a transfer has come to.
type Result struct {
	Summary job.Summary

	// Reference is set if the peer speaks the reference protocol after all: its host's offer was an accident of its
	// memory. The session that went before goes on with its step Resumed.
	Reference bool
}

// Run transfers the file with the peer of a session that has not been started. It tells the peer of every failure that
// can still reach the peer, and releases what the transfer held. hostSize is how many bytes the host's file has, if
// the DPU knows that already; otherwise 0.
func Run(ctx context.Context, c role.Config, session *protocol.Session, hostSize uint64) (Result, error) {
	t := newTransfer(c, session)
	var err error
	if !c.Side.Initiates() {
		chunk, depth := t.config.Proposal(hostSize)
		err = session.Propose(chunk, depth)
	}
	if err == nil {
		err = t.lead(ctx)
	}
	if err == nil {
		err = t.stats.SomeFailed()
	}
	t.logEnd(err)
	return Result{Summary: t.stats.Result(), Reference: t.reference}, err
}

// Tell tells the peer of a session that has not been started why this side gives up.
func Tell(c role.Config, session *protocol.Session, failed error) {
	newTransfer(c, session).tell(failed)
}

// transfer is one transfer with one peer. The holder of owner owns it, and the session in it: the goroutine that calls
// lead, unless it waits for something to happen. Calls that may hang are made by jobs, which report to it.
//
//	messages ─────────────►┐                ┌─► session ─► messages to the peer
//	job ───── its end ────►├─► lead's loop ─┤
//	lanes ─── batches ────►│                └─► the next job
//	pulse ────────────────►┘
//
// While lead waits, a lane becomes the owner for messages and batches between two chunks, so that no other thread has
// to be woken for them.
type transfer struct {
	owner   semaphore // held by the goroutine that uses what follows, except where it says otherwise
	config  *role.Config
	params  *role.Params // the plan is set by the agreement
	session *protocol.Session
	trace   job.Trace      // of the session's messages
	role    role.Role      // nil until the agreement
	opened  *window.Window // set by the job that opens it; released after all jobs have returned
	lent    semaphore      // held unless the owner waits and changes nothing meanwhile
	watch   liveness
	seen    standstill
	carried func() int64 // Window.Carried of what is opened; nil before, or if nothing counts
	stats   *role.Stats
	message []byte // reused for each message

	defect    atomic.Pointer[job.Defect] // the first panic of the loop, a lane or a job
	broken    error                      // what a lane has noticed of the peer, and ends the transfer
	skipsPeer bool                       // the next step serves anything but messages of the peer
	posted    *mailbox                   // what is left to do by the owner, for example when a job has ended
	jobs      sync.WaitGroup
	running   atomic.Int64 // jobs
	reference bool         // the peer speaks the reference protocol

	ending semaphore // held while the role is settled or abandoned
}

func newTransfer(c role.Config, session *protocol.Session) *transfer {
	if c.Progress == nil {
		c.Progress = &job.Progress{}
	}
	params := role.NewParams(&c)
	lent := make(semaphore, 1)
	lent.acquire()
	return &transfer{
		owner: make(semaphore, 1), lent: lent, ending: make(semaphore, 1),
		config: &c, params: params, session: session,
		trace:   job.Trace{Log: c.Log, Protocol: "native"},
		stats:   role.NewStats(params),
		message: make([]byte, 0, c.Conn.MaxMessage()),
		posted:  newMailbox(),
	}
}

// semaphore has one holder at a time. Unlike a mutex it can be waited for in virtual time.
type semaphore chan struct{}

func (s semaphore) acquire() { s <- struct{}{} }

func (s semaphore) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) release() { <-s }

// lead leads the transfer to its end. If a call hangs it stays the owner, so that a lane which returns later leaves the
// session alone.
func (t *transfer) lead(ctx context.Context) error {
	t.owner.acquire()
	endDescription := t.config.Progress.Describe(t.describe)
	working, stop := context.WithCancelCause(ctx)
	err := t.protect(func() error { return t.converse(working) })
	endDescription()
	if errors.Is(err, job.ErrIdle) {
		job.LogStall(&t.config.StallLog, t.snapshot())
	}
	if t.session.State() == protocol.Cancelling { // by the sender, which waits for the results
		stop(errEnded)
		err = cmp.Or(t.protect(func() error { t.reportCancelled(); return nil }), err)
	} else if err != nil {
		stop(errEnded)
		err = t.protect(func() error { return t.giveUp(err) })
	}
	stop(errEnded)
	returned, err := t.windUp(err)
	if returned {
		t.owner.release()
	}
	return err
}

// errEnded is the cause with which a transfer that has ended ends its own jobs.
var errEnded = errors.New("the copy has ended")

func (t *transfer) converse(ctx context.Context) error {
	t.watch.start(t.config.Side, t.config.IdleTimeout)
	defer t.watch.stop()
	late, latest := job.Overtime(ctx, job.PartingTime), job.Overtime(ctx, job.RenameGrace)
	if err := t.Send(ctx, t.session.Start()); err != nil {
		return t.explain(ctx, err)
	}
	for !t.complete() {
		err := t.stepUninterrupted(ctx, late, latest)
		if err != nil {
			err = t.explain(late, err)
		}
		if err != nil {
			return t.conclude(err)
		}
	}
	return nil
}

// complete reports whether there is nothing left to do: a sender has had its transfer, a receiver has lost its peer
// after that, or another session continues.
func (t *transfer) complete() bool {
	switch t.session.State() {
	case protocol.Done, protocol.HandedOver:
		return true
	case protocol.Ready:
		return t.session.Transfers() > 0 && t.params.Sends()
	}
	return false
}

// step handles the next thing that happens before until ends; ctx is for what was posted. A peer that always has a
// message does not keep this side from anything else.
func (t *transfer) step(ctx, until context.Context) error {
	if t.broken != nil {
		return t.broken
	}
	if t.skipsPeer = !t.skipsPeer; t.skipsPeer {
		return t.await(ctx, until, closed)()
	}
	if received, err := t.receive(until); received {
		return err
	}
	return t.await(ctx, until, nil)()
}

// closed is a channel that is always ready.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// await gives up ownership until something happens, or else is ready, and returns how to handle that.
func (t *transfer) await(ctx, until context.Context, otherwise <-chan struct{}) (handle func() error) {
	var waiting <-chan struct{}
	if box := t.outbox(); box != nil {
		waiting = box.Waiting()
	}
	t.owner.release()
	defer t.owner.acquire()
	select {
	case <-otherwise:
		return nothing
	case <-t.config.Conn.Arrived():
		return nothing
	case <-t.config.Conn.Done():
		return func() error { return t.lost(until) }
	case <-t.posted.arrived:
		return func() error { return t.servePosted(ctx, until) }
	case <-waiting:
		return func() error { return t.flush(until) }
	case <-t.watch.pulse():
		return func() error { return t.beat(until) }
	case <-until.Done():
		return func() error { return context.Cause(until) }
	}
}

func nothing() error { return nil }

// servePosted does the first thing that was posted. After a failure the rest is still to be done: the transfer goes on
// if a job is renaming a target, and ends with what that job posts.
func (t *transfer) servePosted(ctx, until context.Context) error {
	if until.Err() != nil {
		return context.Cause(until) // which may well be why a job has ended
	}
	t.watch.progressed()
	return t.posted.take()(ctx)
}

// take lets the session judge a message and does what it asks for.
func (t *transfer) take(ctx context.Context, message []byte) error {
	if t.ofEarlierSession(message) {
		t.trace.Received(message, t.session.State())
		return nil
	}
	step, err := t.session.Receive(message)
	t.trace.Received(message, t.session.State())
	if err != nil {
		t.partWith(step.Reply)
		return err
	}
	if err := t.Send(ctx, step.Reply); err != nil { // it shows soon enough that nothing can be sent
		t.config.Log.Debug().Err(err).Msg("could not send an answer")
	}
	t.watch.received()
	switch step.Event {
	case protocol.Planned:
		return t.begin(ctx, step.Plan)
	case protocol.WindowOpened:
		of := step.Window // step itself stays on the stack
		t.openWindow(ctx, func(ctx context.Context, l window.Layout) (*window.Window, error) {
			return t.config.Memory.Open(ctx, l, of)
		})
		return nil
	case protocol.PeerBeat:
		if t.session.State() != protocol.Ready || t.session.Transfers() == 0 { // after it there is no work
			t.watch.peerWorked(step.Beat)
		}
		return nil
	case protocol.PeerAborting:
		return role.Failed(step.Failure)
	case protocol.ToReference:
		t.reference = true
		return nil
	}
	t.watch.progressed()
	return t.role.Handle(ctx, step)
}

// ofEarlierSession reports whether the peer sent a message before it knew that a session begins again. Such messages
// are not signs of life.
func (t *transfer) ofEarlierSession(message []byte) bool {
	if !t.config.Restarted || t.session.State() != protocol.AwaitHello {
		return false
	}
	kind := wire.TypeOf(message)
	return kind != wire.TypeHello && kind != wire.TypeAbort
}

// begin starts what was agreed.
func (t *transfer) begin(ctx context.Context, plan protocol.Plan) error {
	t.params.Plan = plan
	if err := t.params.Check(); err != nil {
		return err
	}
	t.stats.Planned(t.session.Peer())
	t.watch.progressed()
	of := &role.Transfer{Params: t.params, Session: t.session, Link: t, Stats: t.stats, Message: t.message}
	if t.params.Sends() {
		t.role = send.New(of)
	} else {
		t.role = receive.New(of)
	}
	if err := t.role.Begin(ctx); err != nil {
		return err
	}
	if t.ownsWindow() {
		t.openWindow(ctx, t.config.Memory.Expose)
	}
	return nil
}

func (t *transfer) ownsWindow() bool { return t.config.Side == t.params.Plan.WindowOwner() }

// openWindow opens this side's end of the window in a job: a device may take its time to register memory, or wait for
// the peer, and meanwhile both sides send heartbeats. The window's owner then tells the peer where it is.
func (t *transfer) openWindow(ctx context.Context, open func(context.Context, window.Layout) (*window.Window, error)) {
	layout := t.params.Layout()
	t.Run(ctx, func(ctx context.Context) role.Call {
		w, err := open(ctx, layout)
		if err != nil {
			return func(ctx context.Context) error { return t.notOpened(ctx, err) }
		}
		t.opened = w
		return func(ctx context.Context) error { return t.windowOpened(ctx, w) }
	})
}

func (t *transfer) windowOpened(ctx context.Context, w *window.Window) error {
	if t.ownsWindow() {
		message, err := t.session.Window(w.Address, w.Descriptor)
		if err != nil {
			return err
		}
		if err := t.Send(ctx, message); err != nil {
			return err
		}
	}
	t.params.LogWindow(w)
	t.stats.WindowOpened(w.Transport)
	t.carried = w.Carried
	return t.role.WindowOpened(ctx, w)
}

// notOpened blames a window's owner that has fallen silent: a device may need one that runs to import its memory, and
// only reports that it failed.
func (t *transfer) notOpened(ctx context.Context, err error) error {
	if t.ownsWindow() {
		return err
	}
	if _, receiveErr := t.receive(ctx); receiveErr != nil {
		return receiveErr
	}
	if t.mayUseOtherPath(err) {
		return outOfReach(t.params.Plan.Path, err)
	}
	if t.watch.missedBeat() {
		return job.NewError(job.ErrIdle, err, "check the other side",
			"timeout: no message from the %s, and its window cannot be opened", t.config.Side.Other())
	}
	if errors.Is(err, window.ErrUnreachable) {
		return job.NewError(job.ErrCapability, err,
			"use --path tls, or check the RDMA devices and --net-devices of both sides with dma-copy devices",
			"path %s: %v", t.params.Plan.Path, err)
	}
	return err
}

// mayUseOtherPath reports whether the transfer can begin again on another path after the window could not be opened.
// The bytes that a stream has delivered cannot be read again.
func (t *transfer) mayUseOtherPath(err error) bool {
	others := t.config.Paths.Alternatives(t.params.Plan.Path).Intersect(job.PathsIn(t.session.Peer().Flags))
	return window.IsOutOfReach(err) && others != 0 && !t.params.Plan.StreamSource
}

// outOfReach returns the error for a path that both sides leave.
func outOfReach(path wire.Path, err error) error {
	if path == wire.PathDMA {
		return job.NewError(job.ErrOtherPath, err, "use --path fast", "the DPU may not import the host's memory")
	}
	return job.NewError(job.ErrOtherPath, err, "use --path tls", "the memory of the other machine is not within reach")
}

// logEnd says that the transfer has ended, and why.
func (t *transfer) logEnd(failed error) {
	t.config.Log.Debug().Err(failed).Stringer("state", t.session.Reached()).Int64("messages", t.stats.Messages()).
		Msg("transfer ended")
}
