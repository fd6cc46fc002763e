package ping

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// channelInbox is the inbox of a path over the control channel. It waits instead of polling: a peer on the same machine
// may need the CPU.
type channelInbox struct{ conn comch.Conn }

var _ inbox = channelInbox{}

// receive implements inbox.
func (c channelInbox) receive(ctx context.Context) (arrival, error) { return c.receiveControl(ctx) }

// receiveControl implements inbox.
func (c channelInbox) receiveControl(ctx context.Context) (arrival, error) {
	message, err := c.conn.Recv(ctx)
	return arrival{message: message, at: time.Now()}, err
}
