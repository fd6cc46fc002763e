package dmaxfer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// native is one copy in the native protocol. Who has the turn owns it, and the session in it: the goroutine that calls run, unless it
// waits for something to happen. What takes long is done by jobs, which report to it.
//
//	messages ─────────────►┐                ┌─► session ─► messages to the peer
//	job ───── its end ────►├─► run's loop ──┤
//	lanes ─── batches ────►│                └─► the next job
//	pulse ────────────────►┘
//
// While run waits, a lane takes the turn for messages and batches between two of its pieces: so nobody is woken for them.
type native struct {
	turn     turn // taken by whoever uses what follows, but for what says otherwise
	options  Options
	place    *place
	conn     comch.Conn
	session  *negotiate.NativeSession
	memory   memoryLayer
	progress *Progress
	plan     negotiate.Plan
	part     part              // from the plan on
	opened   *reach            // this side's end of the window, to be given back; set before reach by the job that opens it
	reach    *reach            // the same, once the owner knows of it
	broken   error             // what a lane has heard of the peer, and ends the copy
	others   bool              // what is not a message comes next
	ended    chan func() error // what is left to do on the owner's side when a job has ended
	jobs     sync.WaitGroup
	watch    liveness
	limiter  *rate.Limiter // nil: as fast as it goes
	message  []byte        // the buffer of messages to the peer
	started  time.Time
	summary  Summary
	retries  atomic.Int64
	replaced atomic.Int64 // bytes that an earlier copy had brought, and that this one sent nevertheless
	messages int64        // sent

	settling  turn       // held while the part is ended or abandoned
	notifying sync.Mutex // Options.Notify is running
	over      bool       // and must not be called any more; guarded by notifying
}

func newNative(o Options, p *place, conn comch.Conn, memory memoryLayer, session *negotiate.NativeSession) *native {
	n := &native{
		options: o, place: p, conn: conn, session: session, memory: memory, progress: o.Progress,
		turn: make(turn, 1), settling: make(turn, 1),
		ended:   make(chan func() error, 2),
		message: make([]byte, 0, conn.MaxMessage()),
		started: time.Now(),
	}
	if n.progress == nil {
		n.progress = &Progress{}
	}
	return n
}

// turn holds a token while somebody has it. Unlike a mutex it can be waited for in virtual time.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }

func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) leave() { <-t }

// part is what a side does in the copy: the sending or the receiving.
type part interface {
	// begin follows the agreement.
	begin(ctx context.Context) error

	// reached says that this side's end of the window is open.
	reached(ctx context.Context) error

	// take does what a message of the peer asks of this part.
	take(ctx context.Context, step negotiate.NativeStep) error

	// due tells whether flush has something to send, waiting delivers a token when it is called for, and hurry makes due what still
	// waits for company.
	due() bool
	waiting() <-chan struct{}
	hurry()

	// flush sends the peer what the lanes have to say.
	flush(ctx context.Context) error

	// patience is how long the peer's word is enough that it works on what it has to do now.
	patience() time.Duration

	// commitment is how far it is beyond the point of no return.
	commitment() commitment

	// settle ends the part; failed is why the copy did, or nil. It returns what is kept for a later copy.
	settle(failed error) (kept Kept, err error)

	// abandon is settle while a call of a job has not returned. What that may use stays open. It may hang itself.
	abandon(failed error) (kept Kept)
}

// run leads the copy to its end and tells the peer of every failure that it can still hear of. If a call hangs it keeps
// the turn, so that a lane which returns later leaves the session alone.
func (n *native) run(ctx context.Context) error {
	n.turn.take()
	working, stop := context.WithCancelCause(ctx)
	err := n.converse(working)
	if err != nil {
		n.tell(err)
	}
	stop(errStopped)
	returned, err := n.windUp(err)
	if returned {
		n.turn.leave()
	}
	return err
}

// errStopped is the cause with which a copy that has ended ends its own jobs.
var errStopped = errors.New("the copy has ended")

func (n *native) converse(ctx context.Context) error {
	n.watch.start(n.options.Side, n.options.IdleTimeout)
	defer n.watch.stop()
	late, latest := overtime(ctx, partingTime), overtime(ctx, namingTime)
	if err := n.send(ctx, n.session.Start()); err != nil {
		return n.explain(ctx, err)
	}
	for n.session.State() != negotiate.Done {
		err := n.stepAsCommitted(ctx, late, latest)
		if err != nil {
			err = n.explain(late, err)
		}
		if err != nil {
			return n.conclude(err)
		}
	}
	return nil
}

// step handles the next thing that happens. A peer that has much to say does not keep this side from anything else.
func (n *native) step(ctx context.Context) error {
	if n.broken != nil {
		return n.broken
	}
	if n.others = !n.others; n.others {
		return n.await(ctx, atOnce)()
	}
	if heard, err := n.hear(ctx); heard {
		return err
	}
	return n.await(ctx, nil)()
}

// atOnce is an event that has happened.
var atOnce = func() <-chan struct{} {
	happened := make(chan struct{})
	close(happened)
	return happened
}()

// await gives the turn away until something happens, or else is ready, and returns how to handle that.
func (n *native) await(ctx context.Context, otherwise <-chan struct{}) (handle func() error) {
	waiting := n.waiting()
	n.turn.leave()
	defer n.turn.take()
	select {
	case <-otherwise:
		return nothing
	case <-n.conn.Arrived():
		return nothing
	case <-n.conn.Done():
		return func() error { return n.lost(ctx) }
	case finish := <-n.ended:
		return func() error { return n.finish(ctx, finish) }
	case <-waiting:
		return func() error { return n.flush(ctx) }
	case <-n.watch.pulse():
		return func() error { return n.beat(ctx) }
	case <-ctx.Done():
		return func() error { return context.Cause(ctx) }
	}
}

func nothing() error { return nil }

// finish is what is left to do of a job.
func (n *native) finish(ctx context.Context, job func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // which may well be why the job has ended
	}
	n.watch.moved()
	return job()
}

// flush sends what is due, unless a lane has done so.
func (n *native) flush(ctx context.Context) error {
	n.watch.moved()
	return n.part.flush(ctx)
}

func (n *native) waiting() <-chan struct{} {
	if n.part == nil {
		return nil
	}
	return n.part.waiting()
}

// take lets the session judge a message and does what it asks for.
func (n *native) take(ctx context.Context, message []byte) error {
	step, err := n.session.Receive(message)
	if err != nil {
		n.partWith(step.Reply)
		return err
	}
	if step.Reply != nil {
		n.answer(ctx, step.Reply)
	}
	n.watch.heard()
	switch step.Event {
	case negotiate.Planned:
		return n.begin(ctx, step.Plan)
	case negotiate.WindowOpened:
		n.reachFor(ctx, step.Window)
		return nil
	case negotiate.PeerBeat:
		if n.commitment() != named { // after that there is nothing to work on
			n.watch.peerWorked(step.Beat)
		}
		return nil
	case negotiate.ToReference:
		return &referencePeer{step.Reference, step.ReferenceStep}
	}
	n.watch.moved()
	return n.part.take(ctx, step)
}

// begin makes room for what was agreed.
func (n *native) begin(ctx context.Context, plan negotiate.Plan) error {
	n.plan = plan
	if err := n.checkPlan(); err != nil {
		return err
	}
	n.announce()
	n.watch.moved()
	if plan.Sender == n.options.Side {
		n.part = newSending(n)
	} else {
		n.part = newReceiving(n)
	}
	if err := n.part.begin(ctx); err != nil {
		return err
	}
	if n.options.Side == negotiate.Host {
		n.expose(ctx)
	}
	return nil
}

// job does work in another goroutine; what it returns is called by the owner, unless the copy has ended by then.
func (n *native) job(work func() (finish func() error)) {
	n.jobs.Go(func() { n.ended <- work() })
}

func failWith(err error) func() error { return func() error { return err } }
