package doca

import (
	"context"
	"slices"
	"sync"
)

// consumerList is the list of the peer's consumers.
type consumerList struct {
	mu      sync.Mutex
	ids     []uint32      // in the order in which they appeared
	changed chan struct{} // closed at the next change
}

func (l *consumerList) add(id uint32) {
	l.update(func(ids []uint32) []uint32 { return append(ids, id) })
}

func (l *consumerList) remove(id uint32) {
	l.update(func(ids []uint32) []uint32 {
		return slices.DeleteFunc(ids, func(known uint32) bool { return known == id })
	})
}

func (l *consumerList) clear() { l.update(func([]uint32) []uint32 { return nil }) }

func (l *consumerList) update(change func([]uint32) []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = change(l.ids)
	close(l.changed)
	l.changed = make(chan struct{})
}

// snapshot returns the ids, and a channel that is closed when they have changed.
func (l *consumerList) snapshot() ([]uint32, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ids), l.changed
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
