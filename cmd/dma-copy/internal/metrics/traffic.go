package metrics

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/service"
)

// copied has bytes of copies by direction as the daemon sees it.
type copied struct {
	received int64 // by pushes
	sent     int64 // by pulls
}

func (c *copied) add(operation service.Operation, bytes int64) {
	if operation == service.Push {
		c.received += bytes
	} else {
		c.sent += bytes
	}
}

// traffic counts the bytes of copies, also of those that run. Any goroutine may call its methods.
type traffic struct {
	mu      sync.Mutex
	total   copied
	running map[request]int64 // bytes of a running copy that total has
}

// request identifies a request of a daemon.
type request struct{ session, number uint64 }

func requestOf(r service.Record) request { return request{r.Session.ID, r.Request} }

func newTraffic() *traffic { return &traffic{running: make(map[request]int64)} }

// began is as service.Observer.Began.
func (t *traffic) began(r service.Record) {
	if !r.Transfers() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[requestOf(r)] = 0
}

// ended is as service.Observer.Ended, for a copy.
func (t *traffic) ended(r service.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := r.Bytes - t.running[requestOf(r)]
	delete(t.running, requestOf(r))
	t.total.add(r.Operation, max(0, more))
}

// count returns the bytes of all copies until now, from the present status of the server. They never decrease, also if
// several calls overlap.
func (t *traffic) count(status service.Status) copied {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, each := range status.Connections {
		if each.Request == nil {
			continue
		}
		id := requestOf(*each.Request)
		counted, is := t.running[id] // not if it has ended since
		if more := each.Moved - each.Resumed - counted; is && more > 0 {
			t.running[id] = counted + more
			t.total.add(each.Request.Operation, more)
		}
	}
	return t.total
}
