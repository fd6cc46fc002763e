package network

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
)

// smallBuffers have a Send wait soon.
func smallBuffers(s *Settings) { s.buffers = 4 << 10 }

func TestControlConforms(t *testing.T) {
	m := newMachines(t, smallBuffers)
	comchtest.TestConn(t, func(t *testing.T) (host, dpu comch.Conn) {
		both := m.meet(t)
		return both.client, both.server
	})
}
