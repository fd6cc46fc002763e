package metrics

import (
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/service"
)

// server is a service.Server with running copies.
type server struct{ connections []service.ConnectionStatus }

func (s *server) status() service.Status {
	return service.Status{Connections: slices.Clone(s.connections)}
}

func record(session uint64, operation service.Operation) service.Record {
	return service.Record{Session: service.Session{ID: session}, Request: 1, Operation: operation}
}

// run has the server report how far a copy is.
func (s *server) run(r service.Record, moved, resumed int64) {
	s.remove(r)
	s.connections = append(s.connections, service.ConnectionStatus{
		Session: r.Session, Request: &r, Moved: moved, Resumed: resumed,
	})
}

func (s *server) remove(r service.Record) {
	s.connections = slices.DeleteFunc(s.connections, func(c service.ConnectionStatus) bool {
		return c.Session.ID == r.Session.ID
	})
}

// end ends a copy, as the server does: it is not in the status any more when the observer is called.
func (s *server) end(t *traffic, r service.Record, bytes int64) {
	s.remove(r)
	r.Bytes = bytes
	t.ended(r)
}

func (s *server) wantCount(t *testing.T, c *traffic, want copied) {
	t.Helper()
	if got := c.count(s.status()); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestCount(t *testing.T) {
	s := &server{}
	c := newTraffic()
	push, pull, other := record(1, service.Push), record(2, service.Pull), record(3, service.Pull)
	for _, r := range []service.Record{push, pull, other} {
		c.began(r)
	}
	s.run(push, 100, 0)
	s.run(pull, 30, 50) // some of what an earlier copy had left is verified
	s.wantCount(t, c, copied{received: 100})
	s.run(push, 90, 0) // a chunk is sent again
	s.run(pull, 60, 50)
	s.run(other, 5, 0)
	s.wantCount(t, c, copied{received: 100, sent: 15})
	s.end(c, push, 120)
	s.end(c, pull, 8) // it has failed, and less is certain
	s.wantCount(t, c, copied{received: 120, sent: 15})
	s.end(c, other, 7)
	s.wantCount(t, c, copied{received: 120, sent: 17})
}

// Requests that are no copies are not counted, nor is what runs without having begun.
func TestOtherRequestsAreNotCounted(t *testing.T) {
	s := &server{}
	c := newTraffic()
	ping, plan := record(1, service.Ping), record(4, service.Push)
	plan.DryRun = true
	c.began(plan)
	s.run(plan, 10, 0)
	c.began(ping)
	s.run(ping, 64, 0)
	s.run(record(2, service.Pull), 10, 0)
	s.connections = append(s.connections, service.ConnectionStatus{Session: service.Session{ID: 3}})
	s.wantCount(t, c, copied{})
	s.end(c, plan, 0)
	s.wantCount(t, c, copied{})
	if len(c.running) > 0 {
		t.Error("a ping or a dry run is a copy")
	}
}

// A copy may end after the status was taken, and before it is counted.
func TestCopyEndsWhileItIsCounted(t *testing.T) {
	s := &server{}
	push := record(1, service.Push)
	c := newTraffic()
	c.began(push)
	s.run(push, 99, 0)
	status := s.status()
	s.end(c, push, 100)
	if got, want := c.count(status), (copied{received: 100}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
