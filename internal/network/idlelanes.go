package network

import "sync"

// idleLanes are the data connections of a sender whose window was closed with nothing under way, for example because a
// daemon has little memory left. The receiver may still have its end of the window, and use that for the next transfer:
// it cannot know in time that a connection has been closed. Its methods are safe for concurrent use. The zero value is
// ready for use.
type idleLanes struct {
	mu     sync.Mutex
	closed bool
	lanes  map[laneID]*lane
}

// put keeps a data connection until it is taken, another window is opened, or close.
func (i *idleLanes) put(id laneID, l *lane) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || i.lanes[id] != nil {
		_ = l.Close()
		return
	}
	if i.lanes == nil {
		i.lanes = make(map[laneID]*lane)
	}
	l.socket.release()
	i.lanes[id] = l
}

// take returns a data connection that put has kept, or nil.
func (i *idleLanes) take(id laneID) *lane {
	i.mu.Lock()
	defer i.mu.Unlock()
	l := i.lanes[id]
	delete(i.lanes, id)
	return l
}

// retain closes the data connections of all windows but one, and those of that one which carry frames otherwise: a peer
// must not have content of the path tls sent without encryption by the number of a window that was on the path tcp.
func (i *idleLanes) retain(window uint64, plain bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, l := range i.lanes {
		if id.window != window || l.plain != plain {
			_ = l.Close()
			delete(i.lanes, id)
		}
	}
}

// close closes all of them, and what put is called with later.
func (i *idleLanes) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for _, l := range i.lanes {
		_ = l.Close()
	}
	clear(i.lanes)
}
