package comch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// How often Dial asks whether the server is there yet: at once, then ever more seldom.
const (
	firstRetry = time.Millisecond
	lastRetry  = 50 * time.Millisecond
)

// Dial connects to the server called name on the DPU of a host's device, and waits up to wait for it to appear.
// ErrPeerAbsent; the cause of ctx; a *doca.Error when the device itself refuses.
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
	established, err := backoff.Retry(waiting, func() (*doca.Connection, error) {
		established, err := client.Connect(waiting)
		if err != nil && !errors.Is(err, doca.ErrNoServer) {
			err = backoff.Permanent(err)
		}
		return established, err
	}, backoff.WithBackOff(schedule), backoff.WithMaxElapsedTime(0))
	if err != nil && waiting.Err() != nil {
		return nil, context.Cause(waiting)
	}
	return established, err
}

func absent(wait time.Duration) error {
	return fmt.Errorf("%w within %s", ErrPeerAbsent, wait)
}
