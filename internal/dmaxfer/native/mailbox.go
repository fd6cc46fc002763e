package native

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
)

// mailbox has what goroutines of a transfer want its owner to do.
type mailbox struct {
	arrived chan struct{} // delivers a token when there is something

	mu    sync.Mutex
	calls []role.Call
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

// add never blocks.
func (m *mailbox) add(call role.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, call)
	m.signal()
}

// take returns the first call. There is another token if it is not the last.
func (m *mailbox) take() (call role.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	call, m.calls = m.calls[0], m.calls[1:]
	if len(m.calls) > 0 {
		m.signal()
	}
	return call
}

func (m *mailbox) signal() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}
