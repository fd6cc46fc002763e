package service

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// Operation is what a request asks for, seen from the command.
type Operation string

// The operations.
const (
	Push    Operation = "push" // the command sends, and the daemon receives
	Pull    Operation = "pull" // the daemon sends, and the command receives
	List    Operation = "list"
	Remove  Operation = "remove"
	Mkdir   Operation = "mkdir"
	Ping    Operation = "ping"
	Measure Operation = "measure" // of a copy from memory to memory
)

// Operations returns all operations.
func Operations() []Operation { return []Operation{Push, Pull, List, Remove, Mkdir, Ping, Measure} }

// HasPlace reports whether the operation is about entries of a share.
func (o Operation) HasPlace() bool { return o != Ping && o != Measure }

// Copies reports whether the operation transfers files, unless it is a dry run.
func (o Operation) Copies() bool { return o == Push || o == Pull }

// Session describes a connection of the daemon to its Observer. Fields are known from the event on that their comment
// names.
type Session struct {
	ID        uint64    // counts connections from 1
	Function  string    // Incoming.Function
	Connected time.Time // from the beginning

	Fingerprint string // of the peer's key, as identity.Public.String; after the handshake
	KeyName     string // of the trusted key; Authenticated, and empty if the daemon does not authenticate
	Software    string // of the command, printable ASCII; Authenticated

	// Machine and User are what the command says about itself, which nobody checks: printable ASCII; Authenticated.
	Machine, User string
}

// Record describes a request. It is also what an audit log has of it.
type Record struct {
	Session Session
	Request uint64        // counts the requests of a connection from 1
	Began   time.Time     // when the request had arrived
	Waited  time.Duration // of a copy: in the queue

	Operation Operation
	Share     string // as the peer gave it: any bytes, at most wire.MaxName
	Path      string // below the share, of the target or source as far as it is known: any bytes
	Local     string // of a copy: path of the command's file, as it says: any bytes
	DryRun    bool   // of a copy: nothing is transferred, and the summary has what would have been
	Lookup    bool   // of a List: of one entry itself. If there is none it succeeds with 0 entries
	Text      string // that came with a ping: any bytes

	// The following are set when the request has ended.
	Duration time.Duration
	Bytes    int64       // that were transferred, or sent back by a ping
	Entries  int64       // that were transferred, listed or removed
	Removed  []string    // of a Remove, below Path: what is gone, in order and at most as many as a message has
	Code     int         // the exit code for the error; 0 on success
	Err      error       // nil on success. Its text may have bytes of the peer
	Summary  job.Summary // of a copy, also of one whose error is job.ErrSomeFailed; otherwise zero

	// DataPath is what both sides have agreed on for the content of a copy, also of one that has failed;
	// empty: nothing. Encrypted says whether it encrypts.
	DataPath  string
	Encrypted bool
}

// Transfers reports whether the request transfers files, or tries to.
func (r *Record) Transfers() bool { return r.Operation.Copies() && !r.DryRun }

// Observer is told what happens in a Server, after the fact. Its methods are called by many goroutines at once, must
// not block, and must not call the Server.
type Observer interface {
	// Connected is called for each connection, before anything of the peer was read.
	Connected(s Session)

	// Authenticated is called when the peer has proved a key that may use the daemon, and both have greeted.
	Authenticated(s Session)

	// Refused is called if the connection ends before Authenticated, with the exit code for the reason.
	Refused(s Session, code int, reason error)

	// Began and Ended enclose each request, also one that is refused, apart from pings without a text.
	Began(r Record)
	Ended(r Record)

	// Disconnected is called at the end of each connection. reason is nil if the peer ended it between two requests.
	Disconnected(s Session, reason error)

	// Bug is called when a defect of this program has ended a connection: a panic with this value and stack.
	Bug(s Session, value any, stack []byte)
}

// Observers passes every call on to each of its elements.
type Observers []Observer

var _ Observer = Observers(nil)

// Connected implements Observer.
func (o Observers) Connected(s Session) { o.each(func(e Observer) { e.Connected(s) }) }

// Authenticated implements Observer.
func (o Observers) Authenticated(s Session) { o.each(func(e Observer) { e.Authenticated(s) }) }

// Refused implements Observer.
func (o Observers) Refused(s Session, code int, reason error) {
	o.each(func(e Observer) { e.Refused(s, code, reason) })
}

// Began implements Observer.
func (o Observers) Began(r Record) { o.each(func(e Observer) { e.Began(r) }) }

// Ended implements Observer.
func (o Observers) Ended(r Record) { o.each(func(e Observer) { e.Ended(r) }) }

// Disconnected implements Observer.
func (o Observers) Disconnected(s Session, reason error) {
	o.each(func(e Observer) { e.Disconnected(s, reason) })
}

// Bug implements Observer.
func (o Observers) Bug(s Session, value any, stack []byte) {
	o.each(func(e Observer) { e.Bug(s, value, stack) })
}

func (o Observers) each(tell func(Observer)) {
	for _, e := range o {
		tell(e)
	}
}
