// Package status tells what a running daemon does: the daemon's unix socket, which gives one document to each process
// that connects, and the command that reads and prints it.
//
// Only root and the daemon's own user get an answer. The package must not change what the daemon does.
package status

import (
	"runtime"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

// version is the version of the document. Within it fields are only added.
const version = 1

// Document is what a daemon tells about itself. docs/status.schema.json describes its JSON form. Text of peers and
// paths are escaped as in a Go string.
type Document struct {
	V           int          `json:"v"`
	PID         int          `json:"pid"`
	Software    string       `json:"software"`
	Build       Build        `json:"build"`
	Time        time.Time    `json:"time"`
	Started     time.Time    `json:"started"`
	Draining    bool         `json:"draining"`
	Auth        string       `json:"auth"` // "keys" or "none"
	TrustedKeys int          `json:"trusted_keys"`
	Shares      []Share      `json:"shares"`
	Pending     int          `json:"pending_connections"`
	Connections []Connection `json:"connections"`
	Running     int          `json:"running_transfers"`
	Waiting     int          `json:"waiting_transfers"`
	Transfers   int          `json:"max_transfers"`
	Tenants     []Tenant     `json:"tenants"`
	Memory      int64        `json:"memory_bytes"`
	Limits      Limits       `json:"limits"`
	Totals      Totals       `json:"totals"`
	Failures    []Failure    `json:"failures"`
}

// Build is how the program of the daemon was built.
type Build struct {
	Go       string `json:"go"`       // version of Go
	Platform string `json:"platform"` // such as linux/amd64
}

// Limits are the limits of all peers together, apart from the limits of shares and keys. 0 is no limit.
type Limits struct {
	Connections    int     `json:"connections"`
	KeyConnections int     `json:"key_connections"` // of these, of one key
	Transfers      int     `json:"transfers"`       // that run at once
	Memory         int64   `json:"memory_bytes"`
	Bandwidth      int64   `json:"bytes_per_second"`
	FileBytes      int64   `json:"file_bytes"` // of one file
	TreeEntries    int64   `json:"tree_entries"`
	IdleTimeout    float64 `json:"idle_timeout_seconds"`
}

// Share is a share of the daemon.
type Share struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Access string `json:"access"`
}

// Tenant is a key, or without authentication a function, with running or waiting transfers.
type Tenant struct {
	Name    string `json:"name"`
	Running int    `json:"running_transfers"`
	Waiting int    `json:"waiting_transfers"`
}

// Connection is an authenticated connection.
type Connection struct {
	ID          uint64    `json:"session"`
	Function    string    `json:"function"`
	Key         string    `json:"key,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	Software    string    `json:"software"`
	Machine     string    `json:"claimed_machine,omitempty"`
	User        string    `json:"claimed_user,omitempty"`
	Connected   time.Time `json:"connected"`
	Request     *Request  `json:"request,omitempty"`
}

// Request is the running request of a connection.
type Request struct {
	ID        uint64    `json:"request"`
	Operation string    `json:"operation"`
	Share     string    `json:"share,omitempty"`
	Path      string    `json:"path,omitempty"`
	Local     string    `json:"claimed_file,omitempty"`
	DryRun    bool      `json:"dry_run,omitempty"`
	Began     time.Time `json:"began"`
	Moved     int64     `json:"moved_bytes"`
	Total     *int64    `json:"total_bytes,omitempty"` // nil: not known
	Rate      float64   `json:"bytes_per_second"`      // since it began
	Waiting   bool      `json:"waiting"`               // for a permit

	Waits []job.Snapshot `json:"waits,omitempty"` // what the copy waits for
}

// Totals count since the start.
type Totals struct {
	Connections int64 `json:"connections"`
	Refused     int64 `json:"refused"`
	Requests    int64 `json:"requests"`
	Failed      int64 `json:"failed"`
	Bytes       int64 `json:"bytes"`
	Bugs        int64 `json:"bugs"`
}

// Failure is one of the last failures.
type Failure struct {
	Time     time.Time `json:"time"`
	Session  uint64    `json:"session"`
	Function string    `json:"function"`
	Key      string    `json:"key,omitempty"`
	What     string    `json:"what"` // such as "push inbox/a", or "connection"
	Code     int       `json:"code"` // exit code; 0 if the failure has none
	Error    string    `json:"error"`
}

// Daemon is what a document has that the server itself does not know.
type Daemon struct {
	PID           int
	Software      string
	Authenticates bool
	Status        func() service.Status
	Recent        *Recent
}

// Document describes the daemon as of now. Any goroutine may call it.
func (d Daemon) Document(now time.Time) Document {
	s := d.Status()
	doc := Document{
		V: version, PID: d.PID, Software: quote.Printable(d.Software), Time: now.UTC(), Started: s.Started.UTC(),
		Build:    Build{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH},
		Draining: s.Draining, Auth: "none", TrustedKeys: s.TrustedKeys, Shares: []Share{}, Pending: s.Pending,
		Connections: []Connection{}, Running: s.Running, Waiting: s.Waiting, Transfers: s.Limits.Transfers,
		Tenants: []Tenant{}, Memory: s.Memory, Limits: limitsOf(s.Limits), Totals: Totals(s.Totals),
		Failures: d.Recent.failures(),
	}
	if d.Authenticates {
		doc.Auth = "keys"
	}
	for _, share := range s.Shares {
		doc.Shares = append(doc.Shares, Share{quote.Path(share.Name), quote.Path(share.Path), share.Access})
	}
	for _, t := range s.Tenants {
		doc.Tenants = append(doc.Tenants, Tenant{quote.Printable(t.Name), t.Running, t.Waiting})
	}
	doc.Connections = append(doc.Connections, connectionsOf(s.Connections, now)...)
	return doc
}

// connectionsOf asks all copies at the same time what they wait for, so that those that do not answer delay the
// document once.
func connectionsOf(all []service.ConnectionStatus, now time.Time) []Connection {
	shown := make([]Connection, len(all))
	var asking sync.WaitGroup
	for i, c := range all {
		shown[i] = connectionOf(c, now)
		if shown[i].Request != nil {
			asking.Go(func() { shown[i].Request.Waits = c.Progress.Snapshots() })
		}
	}
	asking.Wait()
	return shown
}

func limitsOf(l service.Limits) Limits {
	return Limits{
		Connections: l.Connections, KeyConnections: l.PerKey, Transfers: l.Transfers, Memory: l.Memory,
		Bandwidth: l.Bandwidth, FileBytes: l.MaxBytes, TreeEntries: l.MaxEntries, IdleTimeout: l.IdleTimeout.Seconds(),
	}
}

func connectionOf(c service.ConnectionStatus, now time.Time) Connection {
	shown := Connection{
		ID: c.Session.ID, Function: quote.Printable(c.Session.Function), Key: quote.Printable(c.Session.KeyName),
		Fingerprint: quote.Printable(c.Session.Fingerprint), Software: quote.Printable(c.Session.Software),
		Machine: quote.Printable(c.Session.Machine), User: quote.Printable(c.Session.User),
		Connected: c.Session.Connected.UTC(),
	}
	if c.Request == nil {
		return shown
	}
	r := c.Request
	shown.Request = &Request{
		ID: r.Request, Operation: string(r.Operation), Share: quote.Path(r.Share), Path: quote.Path(r.Path),
		Local: quote.Path(r.Local), Began: r.Began.UTC(), Moved: c.Moved,
		Waiting: c.Waiting, DryRun: r.DryRun,
	}
	if c.Total != job.Unknown && r.Operation.Copies() {
		shown.Request.Total = &c.Total
	}
	if spent := now.Sub(r.Began) - r.Waited; spent > 0 {
		shown.Request.Rate = float64(c.Moved) / spent.Seconds()
	}
	return shown
}
