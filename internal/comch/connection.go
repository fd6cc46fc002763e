package comch

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// connection is a Conn over a doca.Connection; release closes what exists only for it.
type connection struct {
	*doca.Connection
	release func() error
}

var (
	_ Conn     = (*connection)(nil)
	_ FastPath = (*connection)(nil)
)

func (c *connection) Send(ctx context.Context, message []byte) error {
	return translate(c.Connection.Send(ctx, message))
}

func (c *connection) Recv(ctx context.Context) ([]byte, error) {
	message, err := c.Connection.Recv(ctx)
	return message, translate(err)
}

func (c *connection) NewConsumer(
	ctx context.Context, region *doca.Region, config doca.ConsumerConfig,
) (*doca.Consumer, error) {
	consumer, err := c.Connection.NewConsumer(ctx, region, config)
	return consumer, translate(err)
}

func (c *connection) NewProducer(depth int) (*doca.Producer, error) {
	producer, err := c.Connection.NewProducer(depth)
	return producer, translate(err)
}

// spinLimit takes as long as a few chunks of a transfer: a call in vain takes about a microsecond, most of it in a
// system call.
const spinLimit = 400

// SpinLimit implements Conn.
func (c *connection) SpinLimit() int { return spinLimit }

func (c *connection) Close() error { return c.release() }

// translate returns this package's errors for the end of a connection, and other errors as they are.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, doca.ErrClosed):
		return ErrClosed
	case errors.Is(err, doca.ErrDisconnected), errors.Is(err, doca.CodeNotConnected),
		errors.Is(err, doca.CodeConnectionAborted), errors.Is(err, doca.CodeConnectionReset):
		return fmt.Errorf("%w (%w)", ErrPeerLost, err)
	default:
		return err
	}
}
