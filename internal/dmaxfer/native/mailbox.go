package native

import "sync"

// mailbox has what goroutines of a transfer want its owner to do.
type mailbox struct {
	arrived chan struct{} // delivers a token when there is something

	mu    *sync.Mutex
	calls *[]func() error
}

func newMailbox() mailbox {
	return mailbox{arrived: make(chan struct{}, 1), mu: new(sync.Mutex), calls: new([]func() error)}
}

// add never blocks.
func (m mailbox) add(call func() error) {
	m.mu.Lock()
	*m.calls = append(*m.calls, call)
	m.mu.Unlock()
	m.signal()
}

// putBack adds calls before those that have been added since they were taken.
func (m mailbox) putBack(calls []func() error) {
	if len(calls) == 0 {
		return
	}
	m.mu.Lock()
	*m.calls = append(calls, *m.calls...)
	m.mu.Unlock()
	m.signal()
}

func (m mailbox) signal() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}

func (m mailbox) take() []func() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := *m.calls
	*m.calls = nil
	return calls
}
