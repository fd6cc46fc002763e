package doca

import (
	"context"
	"slices"
	"sync/atomic"
)

// consumerList is the list of the peer's consumers. run of the endpoint changes it, and any goroutine reads it.
type consumerList struct{ current atomic.Pointer[consumerIDs] }

type consumerIDs struct {
	ids     []uint32      // in the order in which they appeared; not changed
	changed chan struct{} // closed when there is another list
}

func (l *consumerList) add(id uint32) { l.set(append(slices.Clone(l.current.Load().ids), id)) }

func (l *consumerList) remove(id uint32) {
	l.set(slices.DeleteFunc(slices.Clone(l.current.Load().ids), func(known uint32) bool { return known == id }))
}

func (l *consumerList) set(ids []uint32) {
	if earlier := l.current.Swap(&consumerIDs{ids, make(chan struct{})}); earlier != nil {
		close(earlier.changed)
	}
}

// snapshot returns the ids, and a channel that is closed when they have changed.
func (l *consumerList) snapshot() ([]uint32, <-chan struct{}) {
	list := l.current.Load()
	return slices.Clone(list.ids), list.changed
}

// PeerConsumers returns the ids of the peer's consumers, in the order in which they appeared, and a channel that is
// closed when the list has changed: a consumer is new or has expired, or the connection has ended. Source:
// doca_comch_server_event_consumer_register, doca_comch_client_event_consumer_register.
func (c *Connection) PeerConsumers() ([]uint32, <-chan struct{}) { return c.peers.snapshot() }

// AwaitPeerConsumers waits until the peer has at least count consumers and returns their ids. Errors: the connection's
// cause when it has ended, ctx's cause when that ends first.
func (c *Connection) AwaitPeerConsumers(ctx context.Context, count int) ([]uint32, error) {
	for {
		ids, changed := c.peers.snapshot()
		if len(ids) >= count {
			return ids, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return nil, c.cause
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
