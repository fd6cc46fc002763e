package reference

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
)

// noticeTime is how long a failing side tries to tell its peer, and then waits for the peer to disconnect: a connection
// that is cut at once may lose the notice.
const noticeTime = time.Second

func (t *Transfer) send(ctx context.Context, message []byte) error {
	if message == nil {
		return nil
	}
	ctx, stop := t.untilSilent(ctx, t.config.IdleTimeout)
	defer stop()
	t.now.begin("", "take a message")
	defer t.now.note(func() { t.now.sent = time.Now() })
	return t.transmit(ctx, message)
}

// transmit gives a message to the channel. All that this side sends comes here.
func (t *Transfer) transmit(ctx context.Context, message []byte) error {
	t.trace.Sent(message, t.session.State())
	return t.config.Conn.Send(ctx, message)
}

// hear passes a message to the session. All that arrives comes here.
func (t *Transfer) hear(message []byte) (protocol.Step, error) {
	step, err := t.session.Receive(message)
	t.trace.Received(message, t.session.State())
	return step, err
}

func (t *Transfer) receive(ctx context.Context) ([]byte, error) {
	if message := t.early; message != nil {
		t.early = nil
		return message, nil
	}
	ctx, stop := t.untilSilent(ctx, t.grace())
	defer stop()
	t.now.begin("", dutyOf[t.session.State()])
	message, err := t.config.Conn.Recv(ctx)
	if err == nil {
		t.now.note(func() { t.now.received = time.Now() })
	}
	return message, err
}

// untilSilent returns ctx for as long as the peer may be silent. It ends with what the peer was to do by then. The
// caller calls stop.
func (t *Transfer) untilSilent(ctx context.Context,
	grace time.Duration,
) (within context.Context, stop func()) {
	silent := t.silent(grace) // of the state now: the countdown is another goroutine
	ctx, end := context.WithCancelCause(ctx)
	interval := job.PulseOf(grace)
	c := job.NewCountdown(ctx, job.PulsesIn(grace, interval), interval, func() { end(silent) })
	return ctx, func() {
		c.Stop()
		end(nil)
	}
}

// grace returns how long the peer may be silent. While it preallocates, copies or saves it sends nothing in this
// protocol, so a large file earns it more.
func (t *Transfer) grace() time.Duration {
	switch t.session.State() {
	case protocol.AwaitExport, protocol.AwaitStatus, protocol.AwaitDisconnect:
		return t.longGrace()
	default:
		return t.config.IdleTimeout
	}
}

// longGrace returns how long work on the whole file may take that reports no progress, on either side.
func (t *Transfer) longGrace() time.Duration {
	return t.config.IdleTimeout * time.Duration(1+(t.agreement.Size+graceUnit-1)/graceUnit)
}

func (t *Transfer) silent(grace time.Duration) error {
	state := t.session.State()
	duty := "waiting for it to " + dutyOf[state]
	if state == protocol.Copying {
		duty = "while the copy was running"
	}
	return job.NewError(job.ErrIdle, nil, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s, %s", t.config.Side.Other(), grace, duty)
}

// dutyOf describes what the peer is to do in each state.
var dutyOf = map[protocol.State]string{
	protocol.AwaitDirection:  "report whether it has the file",
	protocol.AwaitExport:     "give access to its memory",
	protocol.Copying:         "report a failure",
	protocol.AwaitStatus:     "copy the file",
	protocol.AwaitDisconnect: "disconnect",
}

// tell sends what a failing side still has to report. It has a deadline of its own, because the transfer's context may
// be what has ended.
func (t *Transfer) tell(message []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
	defer cancel()
	if err := t.transmit(ctx, message); err != nil {
		t.config.Log.Debug().Err(err).Msg("could not report the failure to the peer")
	}
}

// linger lets the peer receive the notice and disconnect first. The DPU's end of the channel takes the host's with it;
// the host's memory may be in use until the DPU has stopped its copy.
func (t *Transfer) linger() {
	select {
	case <-t.config.Conn.Done():
	case <-time.After(noticeTime):
	}
}

func (t *Transfer) notify(e job.Event) {
	if t.config.Notify != nil {
		t.config.Notify(e)
	}
}
