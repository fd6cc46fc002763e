package comch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// How often Dial asks whether the server is there yet: at once, then ever more seldom, so that a long wait costs no processor time.
const (
	firstRetry = time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// Dial connects to the server called name on the DPU of a host's device, and waits up to wait for it to appear, or to have
// room. ErrPeerAbsent, ErrRefused; ErrMessageSize, for which it does not wait; the cause of ctx; a *doca.Error when the device
// itself refuses. Where the driver does not tell a server that refuses from none, as DOCA does not, both are ErrPeerAbsent.
func Dial(ctx context.Context, device *doca.Device, name string, wait time.Duration) (Conn, error) {
	client, err := device.NewClient(name, doca.ChannelConfig{})
	if err != nil {
		return nil, err
	}
	established, err := connectWhenThere(ctx, client, wait)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &connection{Connection: established, release: client.Close}, nil
}

func connectWhenThere(ctx context.Context, client *doca.Client, wait time.Duration) (*doca.Connection, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, wait, absent(wait))
	defer cancel()
	schedule := &backoff.ExponentialBackOff{InitialInterval: firstRetry, Multiplier: 1.5, MaxInterval: lastRetry}
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
	}, backoff.WithBackOff(schedule), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return established, nil
	case waiting.Err() == nil:
		return nil, refused(err)
	case ctx.Err() == nil && errors.Is(last, doca.ErrRefused):
		return nil, refused(last)
	}
	return nil, context.Cause(waiting)
}

// worthWaiting tells what may pass: a server comes, or the one that is there gets room or gives way to another.
func worthWaiting(err error) bool {
	return errors.Is(err, doca.ErrNoServer) || errors.Is(err, doca.ErrRefused) && !errors.Is(err, doca.CodeInvalidValue)
}

// refused says a server's refusal in this package's words; other errors stay.
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

func absent(wait time.Duration) error {
	return fmt.Errorf("%w within %s", ErrPeerAbsent, wait)
}
