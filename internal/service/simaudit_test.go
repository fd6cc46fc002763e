//go:build cgo

package service

import (
	"errors"
	"slices"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// auditor is the Observer of a simulation. It keeps everything by the function of the connection, which each of them
// has of its own.
type auditor struct {
	mu       sync.Mutex
	sessions map[string]*audited
}

// audited is what an auditor was told of one connection.
type audited struct {
	events  []string // apart from those of requests
	keyName string
	running map[uint64]Record // requests that have begun and not ended
	records []Record          // of those that have ended
	twice   []Record          // that have begun or ended twice
}

func newAuditor() *auditor { return &auditor{sessions: make(map[string]*audited)} }

func (a *auditor) note(s Session, change func(*audited)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.sessions[s.Function]
	if of == nil {
		of = &audited{running: make(map[uint64]Record)}
		a.sessions[s.Function] = of
	}
	change(of)
}

func (a *auditor) event(s Session, what string) {
	a.note(s, func(of *audited) { of.events, of.keyName = append(of.events, what), s.KeyName })
}

func (a *auditor) Connected(s Session)               { a.event(s, "connected") }
func (a *auditor) Authenticated(s Session)           { a.event(s, "authenticated") }
func (a *auditor) Refused(s Session, _ int, _ error) { a.event(s, "refused") }
func (a *auditor) Disconnected(s Session, _ error)   { a.event(s, "disconnected") }
func (a *auditor) Bug(s Session, _ any, _ []byte)    { a.event(s, "bug") }
func (of *audited) is(events ...string) bool         { return slices.Equal(of.events, events) }
func (of *audited) hasServed() bool                  { return of.is("connected", "authenticated", "disconnected") }
func (of *audited) hasRefused() bool                 { return of.is("connected", "refused", "disconnected") }
func (of *audited) hasBegun(r Record) (running bool) {
	_, running = of.running[r.Request]
	return running
}

func (a *auditor) Began(r Record) {
	a.note(r.Session, func(of *audited) {
		if of.hasBegun(r) || int(r.Request) != len(of.records)+1 {
			of.twice = append(of.twice, r)
		}
		of.running[r.Request] = r
	})
}

func (a *auditor) Ended(r Record) {
	a.note(r.Session, func(of *audited) {
		if !of.hasBegun(r) {
			of.twice = append(of.twice, r)
		}
		delete(of.running, r.Request)
		of.records = append(of.records, r)
	})
}

// check compares what the auditor was told with what the clients have seen.
func (a *auditor) check(d *simDaemon) {
	d.Helper()
	totals, refused, requests, failed := d.server.Status().Totals, 0, 0, 0
	for function, of := range a.sessions {
		if len(of.running) > 0 || len(of.twice) > 0 {
			d.Errorf("%s: requests have not ended: %+v, or are reported twice: %+v", function, of.running, of.twice)
		}
		if of.hasRefused() {
			refused++
		} else if !of.hasServed() {
			d.Errorf("%s: the events are %q", function, of.events)
		}
		for _, r := range of.records {
			requests++
			if r.Err != nil {
				failed++
			}
			if (r.Err == nil) != (r.Code == 0) {
				d.Errorf("%s: code %d for %v", function, r.Code, r.Err)
			}
		}
	}
	if int(totals.Refused) != refused || int(totals.Failed) != failed || int(totals.Connections) != len(a.sessions) {
		d.Errorf("the totals are %+v, with %d connections refused and %d requests failed", totals, refused, failed)
	}
	for _, c := range d.clients {
		for _, made := range c.made {
			if made.daemon == d {
				a.compare(d, made)
			}
		}
	}
}

// compare holds the records of a connection to what its client has seen.
func (a *auditor) compare(d *simDaemon, made *simConnection) {
	d.Helper()
	of := a.sessions[made.function]
	if of == nil {
		if len(made.requests) > 0 || made.greeted {
			d.Errorf("%s: there is nothing about it", made.function)
		}
		return // the daemon took no more connections
	}
	if made.greeted && (!of.hasServed() || of.keyName != made.client.name) {
		d.Errorf("%s: the events are %q, of %q in place of %q", made.function, of.events, of.keyName, made.client.name)
	}
	left := of.records
	for i, r := range made.requests {
		last := i == len(made.requests)-1
		if len(left) == 0 {
			if !last || !made.lost() {
				d.Errorf("%s: there is no record of %s %s/%s: %v", made.function, r.operation, r.share, r.path, r.err)
			}
			return
		}
		record := left[0]
		left = left[1:]
		if record.Operation != r.operation || record.Share != r.share || record.Path != r.path {
			d.Errorf("%s: the record of %s %s/%s is %+v", made.function, r.operation, r.share, r.path, record)
		}
		unknown := errors.Is(r.err, wire.ErrOutcomeUnknown) && errors.Is(record.Err, job.ErrHung)
		if record.Code != exit.Code(r.err) && !unknown && !(len(left) == 0 && made.lost()) {
			d.Errorf("%s: %s %s/%s: the client has %d (%v), the record %d (%v)", made.function, r.operation, r.share,
				r.path, exit.Code(r.err), r.err, record.Code, record.Err)
		}
	}
	if len(left) > 0 {
		d.Errorf("%s: there are records of requests that nobody made: %+v", made.function, left)
	}
}
