package network

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// secret names a control connection. Only its two sides know it.
type secret [32]byte

// secretPurpose is what Conn.Export derives it for.
const secretPurpose = "data connections"

// laneID names a data connection of a control connection.
type laneID struct {
	window uint64 // of the descriptor of the window
	lane   uint8
}

// sessions are the authenticated control connections of a Listener.
type sessions struct {
	mu       sync.Mutex
	bySecret map[secret]*session
}

// errNotExpected refuses a data connection. It does not say what is wrong with it.
var errNotExpected = errors.New("no transfer expects this data connection")

// expect returns an error if no session has that key.
func (s *sessions) expect(key identity.Public) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.bySecret {
		if each.peer == key {
			return nil
		}
	}
	return errNotExpected
}

// find returns the session with that secret, if it is one of that key.
func (s *sessions) find(named secret, key identity.Public) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.bySecret[named]; found != nil && found.peer == key {
		return found, nil
	}
	return nil, errNotExpected
}

// open registers a session until it is closed.
func (s *sessions) open(named secret, peer identity.Public) *session {
	opened := &session{sessions: s, secret: named, peer: peer, lanes: make(map[laneID]*slot)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySecret == nil {
		s.bySecret = make(map[secret]*session)
	}
	s.bySecret[named] = opened
	return opened
}

// session is a control connection of a Listener whose peer has proved its key. Its data connections arrive before or
// after the transfer that uses them asks for them.
type session struct {
	sessions *sessions
	secret   secret
	peer     identity.Public

	mu     sync.Mutex
	closed bool
	lanes  map[laneID]*slot // expected, or arrived
}

// slot is where a data connection is handed over.
type slot struct {
	arrived  chan *lane // has space for one; closed if none will arrive
	reserved bool       // for a data connection that is being answered, or was
}

// close closes a data connection that nobody has taken, and ends the wait for one.
func (at *slot) close() {
	select {
	case l := <-at.arrived:
		_ = l.Close()
	default:
	}
	close(at.arrived)
}

// slot returns where a data connection is handed over. s.mu is held.
func (s *session) slot(id laneID) (*slot, error) {
	switch at := s.lanes[id]; {
	case s.closed:
		return nil, comch.ErrPeerLost
	case at != nil:
		return at, nil
	case len(s.lanes) == wire.MaxLanes:
		return nil, errNotExpected
	}
	at := &slot{arrived: make(chan *lane, 1)}
	s.lanes[id] = at
	return at, nil
}

// reserve returns the slot of a data connection that may be answered. deliver or end follows.
func (s *session) reserve(id laneID) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.slot(id)
	if err != nil {
		return nil, err
	}
	if at.reserved {
		return nil, errNotExpected
	}
	at.reserved = true
	return at, nil
}

// deliver hands over a data connection, which is closed if no transfer asks for it in time. With an error, after which
// nobody waits for it any more, it is the caller's.
func (s *session) deliver(id laneID, at *slot, l *lane) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[id] != at {
		return errNotExpected
	}
	at.arrived <- l
	time.AfterFunc(helloTime, func() { s.end(id, at) })
	return nil
}

// end forgets a slot: its data connection has been taken, or it could not be answered, or nobody has asked for it.
func (s *session) end(id laneID, at *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[id] == at {
		delete(s.lanes, id)
		at.close()
	}
}

// take waits for a data connection until ctx ends.
func (s *session) take(ctx context.Context, id laneID) (*lane, error) {
	s.mu.Lock()
	at, err := s.slot(id)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer s.end(id, at)
	select {
	case l, open := <-at.arrived:
		if !open {
			return nil, comch.ErrPeerLost
		}
		return l, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close refuses all further data connections, and closes those that nobody has taken.
func (s *session) close() {
	s.sessions.mu.Lock()
	delete(s.sessions.bySecret, s.secret)
	s.sessions.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, at := range s.lanes {
		at.close()
	}
	clear(s.lanes)
}
