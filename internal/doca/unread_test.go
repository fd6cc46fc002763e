package doca_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Two sides that send before either receives do not block each other, for as many messages as a window of 1024 slots
// may cause.
func TestBothSidesSendBeforeTheyReceive(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	const each = 1000
	for range each {
		s.check(s.onDPU.Send(s.ctx, []byte("record")))
	}
	for range each {
		s.check(s.onHost.Send(s.ctx, []byte("acknowledgement")))
	}
	for _, c := range []*doca.Connection{s.onHost, s.onDPU} {
		for range each {
			_ = must(c.Recv(s.ctx))(t)
		}
	}
}
