package comch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The intervals between two attempts. The longest is below half a second, the time for which a DPU side that cannot
// start still listens to report its error to a waiting host.
const firstRetry, lastRetry = time.Millisecond, 200 * time.Millisecond

// Retries returns the intervals between attempts to connect: short at first, then longer, so that a long wait uses
// little CPU time. They are randomized, so that processes started together do not retry at the same time.
func Retries(first, last time.Duration) *backoff.ExponentialBackOff {
	schedule := &backoff.ExponentialBackOff{
		InitialInterval: first, Multiplier: 1.5, MaxInterval: last, RandomizationFactor: 0.25,
	}
	schedule.Reset()
	return schedule
}

// Wait is the time that one side waits for the other, over any number of calls. The zero Wait does not end.
type Wait struct {
	length time.Duration
	until  time.Time
}

// Within returns a Wait of that length that begins now.
func Within(length time.Duration) Wait { return Wait{length, time.Now().Add(length)} }

// context returns a context that ends with ErrPeerAbsent when the wait is over.
func (w Wait) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, w.until, fmt.Errorf("%w within %s", ErrPeerAbsent, w.length))
}

// Dialer connects a host to a server within one Wait. It is used by one goroutine at a time.
type Dialer struct {
	device     *doca.Device
	name       string
	wait       Wait
	pauses     *backoff.ExponentialBackOff // before each Redial
	turnedAway int
}

// NewDialer returns a Dialer for the server called name on the DPU of a host's device.
func NewDialer(device *doca.Device, name string, wait Wait) *Dialer {
	return &Dialer{device: device, name: name, wait: wait, pauses: Retries(10*time.Millisecond, lastRetry)}
}

// Dial connects, and waits for the server to appear or to have a free connection. Errors: ErrPeerAbsent; ErrRefused;
// ErrMessageSize, at once; the cause of ctx; a *doca.Error if the device itself fails. If the driver does not
// distinguish a refusal from a missing server, as DOCA does not, both are ErrPeerAbsent, with DOCA's code for the last
// attempt if it gave one.
func (d *Dialer) Dial(ctx context.Context) (Conn, error) {
	waiting, cancel := d.wait.context(ctx)
	defer cancel()
	return dial(d.device, d.name, func(client *doca.Client) (*doca.Connection, error) {
		return connectWhenThere(ctx, waiting, client)
	})
}

func dial(device *doca.Device, name string, connect func(*doca.Client) (*doca.Connection, error)) (Conn, error) {
	client, err := device.NewClient(name, doca.ChannelConfig{Polled: true})
	if err != nil {
		return nil, err
	}
	established, err := connect(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &connection{Connection: established, release: client.Close}, nil
}

// Redial is Dial after a connection that the server ended before it had sent anything, as a server that serves another
// host does. It pauses first, longer each time. If the wait ends without another connection, the error is
// ErrTurnedAway.
func (d *Dialer) Redial(ctx context.Context) (Conn, error) {
	d.turnedAway++
	if err := d.pause(ctx); err != nil {
		return nil, err
	}
	conn, err := d.Dial(ctx)
	if errors.Is(err, ErrPeerAbsent) || errors.Is(err, ErrRefused) {
		return nil, d.gaveUp()
	}
	return conn, err
}

func (d *Dialer) pause(ctx context.Context) error {
	waiting, cancel := d.wait.context(ctx)
	defer cancel()
	timer := time.NewTimer(d.pauses.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-waiting.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.gaveUp()
}

func (d *Dialer) gaveUp() error {
	return fmt.Errorf("%w (%d times within %s)", ErrTurnedAway, d.turnedAway, d.wait.length)
}

// DialOnce makes one attempt to connect, which lasts no longer than ctx. It returns the errors of doca.Client.Connect,
// or the cause of ctx.
func DialOnce(ctx context.Context, device *doca.Device, name string) (Conn, error) {
	return dial(device, name, func(client *doca.Client) (*doca.Connection, error) { return client.Connect(ctx) })
}

func connectWhenThere(ctx, waiting context.Context, client *doca.Client) (*doca.Connection, error) {
	var last error
	established, err := backoff.Retry(waiting, func() (*doca.Connection, error) {
		established, err := client.Connect(waiting)
		if waiting.Err() == nil {
			last = err
		}
		if err != nil && !worthWaiting(err) {
			err = backoff.Permanent(err)
		}
		return established, err
	}, backoff.WithBackOff(Retries(firstRetry, lastRetry)), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return established, nil
	case waiting.Err() == nil:
		return nil, refused(err)
	case ctx.Err() == nil && errors.Is(last, doca.ErrRefused):
		return nil, refused(last)
	}
	return nil, withReason(context.Cause(waiting), last)
}

// withReason adds to the end of a wait the code that DOCA gave for the last attempt, if it did.
func withReason(err, last error) error {
	if failure, is := errors.AsType[*doca.Error](last); is && errors.Is(err, ErrPeerAbsent) {
		return fmt.Errorf("%w (%w)", err, failure)
	}
	return err
}

// worthWaiting reports whether the reason may pass: a server may start, or an existing one may get a free connection or
// be replaced.
func worthWaiting(err error) bool {
	return errors.Is(err, doca.ErrNoServer) || errors.Is(err, doca.ErrRefused) && !errors.Is(err, doca.CodeInvalidValue)
}

// refused translates a server's refusal to an error of this package; other errors are unchanged.
func refused(err error) error {
	switch {
	case !errors.Is(err, doca.ErrRefused):
		return err
	case errors.Is(err, doca.CodeInvalidValue):
		return ErrMessageSize
	default:
		return fmt.Errorf("%w (%w)", ErrRefused, err)
	}
}
