package comch

import (
	"context"
	"slices"
)

// AwaitConsumers waits until the device knows these consumers of the peer: their ids may arrive over the control
// channel before. Errors: ErrPeerLost, or the cause of ctx.
func AwaitConsumers(ctx context.Context, conn Conn, fast FastPath, wanted []uint32) error {
	for {
		known, changed := fast.PeerConsumers()
		if !slices.ContainsFunc(wanted, func(id uint32) bool { return !slices.Contains(known, id) }) {
			return nil
		}
		select {
		case <-changed:
		case <-conn.Done():
			return ErrPeerLost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
