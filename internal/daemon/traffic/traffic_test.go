package traffic

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/service"
)

// server is a service.Server with running copies.
type server struct {
	mu          sync.Mutex
	connections []service.ConnectionStatus
	asked       int
}

func (s *server) status() service.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return service.Status{Connections: slices.Clone(s.connections)}
}

func (s *server) timesAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func record(session uint64, operation service.Operation) service.Record {
	return service.Record{Session: service.Session{ID: session}, Request: 1, Operation: operation}
}

// run has the server report how far a copy is.
func (s *server) run(r service.Record, moved, resumed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(r)
	s.connections = append(s.connections, service.ConnectionStatus{
		Session: r.Session, Request: &r, Moved: moved, Resumed: resumed,
	})
}

func (s *server) remove(r service.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(r)
}

func (s *server) removeLocked(r service.Record) {
	s.connections = slices.DeleteFunc(s.connections, func(c service.ConnectionStatus) bool {
		return c.Session.ID == r.Session.ID
	})
}

// end ends a copy, as the server does: it is not in the status any more when the observer is called.
func (s *server) end(to service.Observer, r service.Record, bytes int64) {
	s.remove(r)
	r.Bytes = bytes
	to.Ended(r)
}

func (s *server) wantCount(t *testing.T, c *Counter, want Bytes) {
	t.Helper()
	if got := c.Count(s.status()); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestCount(t *testing.T) {
	s := &server{}
	c := NewCounter()
	push, pull, other := record(1, service.Push), record(2, service.Pull), record(3, service.Pull)
	for _, r := range []service.Record{push, pull, other} {
		c.Began(r)
	}
	s.run(push, 100, 0)
	s.run(pull, 30, 50) // some of what an earlier copy had left is verified
	s.wantCount(t, c, Bytes{Received: 100})
	s.run(push, 90, 0) // a chunk is sent again
	s.run(pull, 60, 50)
	s.run(other, 5, 0)
	s.wantCount(t, c, Bytes{Received: 100, Sent: 15})
	s.end(c, push, 120)
	s.end(c, pull, 8) // it has failed, and less is certain
	s.wantCount(t, c, Bytes{Received: 120, Sent: 15})
	s.end(c, other, 7)
	s.wantCount(t, c, Bytes{Received: 120, Sent: 17})
}

// Requests that are no copies are not counted, nor is what runs without having begun.
func TestOtherRequestsAreNotCounted(t *testing.T) {
	s := &server{}
	c := NewCounter()
	ping, plan := record(1, service.Ping), record(4, service.Push)
	plan.DryRun = true
	c.Began(plan)
	s.run(plan, 10, 0)
	c.Began(ping)
	s.run(ping, 64, 0)
	s.run(record(2, service.Pull), 10, 0)
	s.mu.Lock()
	s.connections = append(s.connections, service.ConnectionStatus{Session: service.Session{ID: 3}})
	s.mu.Unlock()
	s.wantCount(t, c, Bytes{})
	s.end(c, ping, 64)
	s.end(c, plan, 0)
	s.wantCount(t, c, Bytes{})
	if !c.idle() {
		t.Error("a ping or a dry run is a copy")
	}
}

// A copy may end after the status was taken, and before it is counted.
func TestCopyEndsWhileItIsCounted(t *testing.T) {
	s := &server{}
	push := record(1, service.Push)
	c := NewCounter()
	c.Began(push)
	s.run(push, 99, 0)
	status := s.status()
	s.end(c, push, 100)
	if got, want := c.Count(status), (Bytes{Received: 100}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h := NewHistory(s.status)
		defer h.Close()
		start := time.Now()
		push := record(1, service.Push)
		h.Began(push)
		s.run(push, 0, 0)
		time.Sleep(Interval / 2)
		s.run(push, 1000, 0)
		time.Sleep(Interval)
		s.end(h, push, 3000)
		time.Sleep(Interval)
		synctest.Wait()
		want := []Sample{
			{Time: start.Add(Interval).UTC(), Received: 1000}, {Time: start.Add(2 * Interval).UTC(), Received: 2000},
		}
		if got := h.Samples(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}

		// Nothing is looked at while no copy runs.
		asked := s.timesAsked()
		time.Sleep(time.Hour)
		if got := s.timesAsked(); got != asked {
			t.Errorf("an idle daemon was asked %d times", got-asked)
		}

		pull := record(2, service.Pull)
		h.Began(pull)
		s.end(h, pull, 500)
		time.Sleep(Interval)
		synctest.Wait()
		last := Sample{Time: start.Add(2*Interval + Interval/2 + time.Hour + Interval).UTC(), Sent: 500}
		if got := h.Samples(); !slices.Equal(got, append(want, last)) {
			t.Errorf("got %v, want %v and %v", got, want, last)
		}
	})
}

// However copies begin and end, all of their bytes are in the samples.
func TestSamplesHaveAllBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h := NewHistory(s.status)
		defer h.Close()
		var copies sync.WaitGroup
		var want int64
		for id := range uint64(200) {
			random := rand.New(rand.NewPCG(id, 1))
			bytes := random.Int64N(1000)
			want += bytes
			copies.Go(func() {
				time.Sleep(time.Duration(random.Int64N(int64(time.Minute))))
				r := record(id, service.Push)
				h.Began(r)
				s.run(r, bytes/2, 0)
				time.Sleep(time.Duration(random.Int64N(int64(2 * Interval))))
				s.end(h, r, bytes)
			})
		}
		copies.Wait()
		time.Sleep(2 * Interval)
		synctest.Wait()
		var got int64
		for _, sample := range h.Samples() {
			got += sample.Received
		}
		if got != want {
			t.Errorf("the samples have %d bytes, want %d", got, want)
		}
	})
}

func TestOldSamplesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h := NewHistory(s.status)
		start := time.Now()
		push := record(1, service.Push)
		h.Began(push)
		time.Sleep((Kept + 5) * Interval)
		synctest.Wait()
		samples := h.Samples()
		if len(samples) != Kept {
			t.Fatalf("%d samples, want %d", len(samples), Kept)
		}
		for i, sample := range samples {
			if want := start.Add(time.Duration(i+6) * Interval); !sample.Time.Equal(want) {
				t.Fatalf("sample %d is of %v, want %v", i, sample.Time, want)
			}
		}
		h.Close() // while the copy runs
		h.Began(record(2, service.Push))
	})
}
