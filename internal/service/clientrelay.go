package service

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Relay asks the daemon to push a file of one of its shares to another daemon, and waits for the result. moved is
// called about once a second with the number of bytes that the target has so far, which never decreases; it may be nil.
// When ctx ends, only Close can follow, which ends the push, too.
//
// A daemon that does not relay for this key, or not to that address, is a *negotiate.Refusal, and a push that failed a
// *negotiate.RelayFailure; the connection can be used again after both. On success the Sum of the result is that of
// the request.
func (c *Client) Relay(
	ctx context.Context, r negotiate.RelayRequest, moved func(bytes uint64),
) (negotiate.Relayed, error) {
	err := c.send(ctx, func(s *negotiate.Service, dst []byte) ([]byte, error) { return s.Relay(dst, r) })
	if err != nil {
		return negotiate.Relayed{}, err
	}
	for {
		step, err := c.answer(ctx)
		switch {
		case err != nil:
			return negotiate.Relayed{}, err
		case step.Event == negotiate.PeerRelayed:
			return step.Relayed, step.Relayed.Err()
		case moved != nil:
			moved(step.Moved)
		}
	}
}
