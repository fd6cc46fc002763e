package status

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

// kept is how many failures a Recent keeps.
const kept = 16

// ofConnection is what failed where it was not a request.
const ofConnection = "connection"

// Recent keeps the last failures of a daemon, as a service.Observer. Its zero value has none. It is safe for concurrent
// use.
type Recent struct {
	mu   sync.Mutex
	last []Failure // at most kept, oldest first
}

var _ service.Observer = (*Recent)(nil)

// Connected implements service.Observer.
func (*Recent) Connected(service.Session) {}

// Authenticated implements service.Observer.
func (*Recent) Authenticated(service.Session) {}

// Refused implements service.Observer.
func (r *Recent) Refused(s service.Session, code int, reason error) {
	r.add(s, ofConnection, code, reason)
}

// Began implements service.Observer.
func (*Recent) Began(service.Record) {}

// Ended implements service.Observer.
func (r *Recent) Ended(record service.Record) {
	what := string(record.Operation)
	if record.Share != "" {
		what += " " + location(quote.Bare(record.Share), quote.Bare(record.Path))
	}
	r.add(record.Session, what, record.Code, record.Err)
}

// Disconnected implements service.Observer. A connection that was refused has its failure already.
func (r *Recent) Disconnected(s service.Session, reason error) {
	if !r.has(s.ID, ofConnection) {
		r.add(s, ofConnection, 0, reason)
	}
}

// Bug implements service.Observer.
func (r *Recent) Bug(s service.Session, value any, _ []byte) {
	r.add(s, ofConnection, 0, fmt.Errorf("defect of dma-copy: %v", value))
}

func (r *Recent) add(s service.Session, what string, code int, err error) {
	if err == nil {
		return
	}
	failure := Failure{
		Time: time.Now().UTC(), Session: s.ID, Function: quote.Bare(s.Function), Key: quote.Bare(s.KeyName), What: what,
		Code: code, Error: quote.Printable(err.Error()),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == kept {
		r.last = append(r.last[:0], r.last[1:]...)
	}
	r.last = append(r.last, failure)
}

// has reports whether a failure of a session is among the last ones.
func (r *Recent) has(session uint64, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.last, func(f Failure) bool { return f.Session == session && f.What == what })
}

// failures returns the failures, oldest first.
func (r *Recent) failures() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Failure{}, r.last...)
}

// location is a share with a path in it, as on the command line.
func location(share, path string) string {
	if path == "" {
		return share
	}
	return share + "/" + path
}
