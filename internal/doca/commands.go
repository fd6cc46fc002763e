package doca

import "sync"

// commands are calls that other goroutines want run to make. It is safe for concurrent use.
type commands struct {
	waiter *waiter

	mu     sync.Mutex
	queue  []func()
	closed bool // run takes no more, and the waiter may be closed
}

// add reports false if the commands are closed; otherwise run will call f.
func (c *commands) add(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.queue = append(c.queue, f)
	}
	return !c.closed
}

func (c *commands) take() []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := c.queue
	c.queue = nil
	return queue
}

// close ends adding and waking. take returns what is left.
func (c *commands) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// wake ends the present sleep of run, or its next one.
func (c *commands) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.waiter.wake()
	}
}
