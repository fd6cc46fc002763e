package native

import (
	"context"
	"errors"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
)

// receive takes the peer's next message, if there is one.
func (t *transfer) receive(ctx context.Context) (received bool, err error) {
	message, received := t.config.Conn.TryRecv()
	if !received {
		return false, nil
	}
	return true, t.take(ctx, message)
}

// Send implements role.Link.
func (t *transfer) Send(ctx context.Context, message []byte) error {
	if message == nil {
		return nil
	}
	t.stats.Sent()
	t.seen.sent++
	sending := t.watch.untilSilent(ctx, t.lent)
	defer sending.end()
	return t.transmit(sending, message)
}

// transmit gives a message to the channel. All that this side sends comes here.
func (t *transfer) transmit(ctx context.Context, message []byte) error {
	t.trace.Sent(message, t.session.State())
	return t.config.Conn.Send(ctx, message)
}

// outbox returns the role's outbox, or nil.
func (t *transfer) outbox() role.Outbox {
	if t.role == nil {
		return nil
	}
	return t.role.Outbox()
}

// flush sends what is due, unless a lane has done so.
func (t *transfer) flush(ctx context.Context) error {
	t.watch.progressed()
	return t.role.Flush(ctx)
}

// beat tells the peer how far this side is, and ends a transfer without progress.
func (t *transfer) beat(ctx context.Context) error {
	if t.carried != nil && t.watch.carried(t.carried()) {
		t.config.Progress.Touch()
	}
	t.watch.worked(t.config.Progress.Beat())
	t.seen.pulse(t.session)
	if t.role == nil {
		return t.watch.check(0) // and the peer does not expect a heartbeat yet
	}
	if err := t.watch.check(t.role.Grace()); err != nil {
		return err
	}
	if t.watch.fellSilent() {
		t.config.Log.Debug().Dur("silence", t.watch.since(t.watch.silent)).Msg("heartbeats of the peer missed")
	}
	if box := t.outbox(); box != nil {
		if box.Flush(); box.Due() {
			if err := t.role.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return t.sendBeat(ctx)
}

func (t *transfer) sendBeat(ctx context.Context) error {
	message, err := t.session.Beat(t.message[:0], t.config.Progress.Beat())
	if err != nil {
		return err
	}
	t.seen.sent-- // which is no progress
	return t.Send(ctx, message)
}

// Run implements role.Link.
func (t *transfer) Run(ctx context.Context, job func(ctx context.Context) role.Call) {
	t.running.Add(1)
	t.jobs.Go(func() {
		defer t.running.Add(-1)
		var then role.Call
		if err := t.protect(func() error { then = job(ctx); return nil }); err != nil {
			then = role.FailWith(err)
		}
		t.posted.add(then)
	})
}

// protect makes a call and turns a panic into an error. The window stays as it is then: a device may still move bytes
// into its memory.
func (t *transfer) protect(call func() error) (err error) {
	defer func() {
		if d, is := errors.AsType[*job.Defect](err); is {
			t.defect.CompareAndSwap(nil, d)
		}
	}()
	defer job.Recover(&err)
	return call()
}

// Post implements role.Link.
func (t *transfer) Post(call role.Call) { t.posted.add(call) }

// Poller implements role.Link.
func (t *transfer) Poller(ctx context.Context) pump.Poller {
	return &poller{t.config.Conn, func() { t.poll(ctx) }}
}

// pollBurst is how many messages a lane handles before it returns to its chunks.
const pollBurst = 16

// poller lets the lanes of a role exchange messages with the peer. It implements pump.Poller.
type poller struct {
	comch.Conn
	poll func()
}

// Poll implements pump.Poller.
func (p *poller) Poll() { p.poll() }

// poll is called by lanes. It does nothing while the transfer has another owner. Errors that end the transfer are left
// to lead, which is woken for them.
func (t *transfer) poll(ctx context.Context) {
	if !t.owner.tryAcquire() {
		return
	}
	defer t.owner.release()
	if t.broken != nil {
		return
	}
	if t.broken = t.exchange(ctx); t.broken != nil {
		t.Post(role.Nothing) // wakes the goroutine that leads the transfer
	}
}

func (t *transfer) exchange(ctx context.Context) error {
	for range pollBurst {
		received, err := t.receive(ctx)
		if err != nil {
			return err
		}
		if box := t.outbox(); box != nil && box.Due() {
			if err := t.flush(ctx); err != nil {
				return err
			}
		} else if !received {
			break
		}
	}
	return nil
}

// mailbox has what goroutines of a transfer want its owner to do.
type mailbox struct {
	arrived chan struct{} // delivers a token when there is something

	mu    sync.Mutex
	calls []role.Call
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

// add never blocks.
func (m *mailbox) add(call role.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, call)
	m.signal()
}

// take returns the first call. There is another token if it is not the last.
func (m *mailbox) take() (call role.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	call, m.calls = m.calls[0], m.calls[1:]
	if len(m.calls) > 0 {
		m.signal()
	}
	return call
}

func (m *mailbox) signal() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}
