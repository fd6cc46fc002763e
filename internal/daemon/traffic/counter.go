// Package traffic counts the bytes of a daemon's copies while they run, and keeps the rates of the last minutes. It
// must not change what the daemon does, and uses no CPU time while no copy runs.
package traffic

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/service"
)

// Bytes counts bytes of copies by direction as the daemon sees it.
type Bytes struct {
	Received int64 // by pushes
	Sent     int64 // by pulls
}

// plus returns b with some more bytes of an operation.
func (b Bytes) plus(operation service.Operation, more int64) Bytes {
	if operation == service.Push {
		b.Received += more
	} else {
		b.Sent += more
	}
	return b
}

// Counter counts the bytes of copies, also of those that run, as a service.Observer. Any goroutine may call its
// methods.
type Counter struct {
	service.Observers // nil: other events are not counted

	mu      sync.Mutex
	total   Bytes
	running map[request]int64 // bytes of a running copy that total has
}

// request identifies a request of a daemon.
type request struct{ session, number uint64 }

func requestOf(r service.Record) request { return request{r.Session.ID, r.Request} }

var _ service.Observer = (*Counter)(nil)

// NewCounter returns a counter at 0.
func NewCounter() *Counter { return &Counter{running: make(map[request]int64)} }

// Began implements service.Observer.
func (c *Counter) Began(r service.Record) {
	if !r.Transfers() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[requestOf(r)] = 0
}

// Ended implements service.Observer.
func (c *Counter) Ended(r service.Record) {
	if !r.Operation.Copies() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more := r.Bytes - c.running[requestOf(r)]
	delete(c.running, requestOf(r))
	c.total = c.total.plus(r.Operation, max(0, more))
}

// Count returns the bytes of all copies until now, from the present status of the server. They never decrease, also if
// several calls overlap.
func (c *Counter) Count(status service.Status) Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range status.Connections {
		if each.Request == nil {
			continue
		}
		id := requestOf(*each.Request)
		counted, is := c.running[id] // not if it has ended since
		if more := each.Moved - each.Resumed - counted; is && more > 0 {
			c.running[id] = counted + more
			c.total = c.total.plus(each.Request.Operation, more)
		}
	}
	return c.total
}

// counted returns the bytes as of the last Count or end of a copy.
func (c *Counter) counted() Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// idle reports whether no copy runs or waits.
func (c *Counter) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) == 0
}
