package network

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
)

// The buffers are small, so that they are full soon, but not so small that the system sends only now and then.
func TestControlConforms(t *testing.T) {
	m := newMachines(t, func(s *Settings) { s.buffers = 64 << 10 })
	comchtest.TestConn(t, func(t *testing.T) (host, dpu comch.Conn) {
		both := m.meet(t)
		return both.client, both.server
	})
}
