package metrics

import (
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/traffic"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/service"
)

// refusedCode is the exit code of a peer that may not do what it asks for.
const refusedCode = 8

// stages are the values of the label stage, by pump.Stage.
var stages = map[pump.Stage]string{
	pump.Reading: "read", pump.Checking: "digest", pump.Copying: "copy", pump.Writing: "write", pump.Peer: "peer",
	pump.RateLimit: "rate_limit",
}

// dryRun is the label for pushes and pulls that transfer nothing.
const dryRun service.Operation = "dry_run"

var operations = []service.Operation{
	service.Push, service.Pull, dryRun, service.List, service.Remove, service.Mkdir, service.Ping,
}

// Metrics counts what a Server does, as its service.Observer.
type Metrics struct {
	software string
	status   func() service.Status
	traffic  *traffic.Counter

	connections  *family
	authFailures *family
	requests     *family
	seconds      *family
	bytes        *family
	entries      *family
	stage        *family
	depth        *family
	retransmits  *family
	limited      *family
	panics       *family
}

var _ service.Observer = (*Metrics)(nil)

// New returns metrics that are all 0. software is the name and version of this program. status is called for each
// request of the metrics, by any goroutine.
func New(software string, status func() service.Status) *Metrics {
	m := &Metrics{
		software: software, status: status, traffic: traffic.NewCounter(),
		connections: newCounter("connections_total", "Connections accepted."),
		authFailures: newCounter("auth_failures_total",
			"Connections that ended before they were authenticated, by reason.", "reason"),
		requests: newCounter("requests_total",
			"Requests that ended, by operation and exit code; 0 is success.", "code", "operation"),
		seconds: newHistogram("request_seconds", "Duration of requests in seconds, including the time in the queue.",
			[]float64{.001, .01, .1, 1, 10, 60, 600, 3600}, "operation"),
		bytes: newCounter("bytes_total", "Bytes copied, also of running copies, by direction as this daemon sees it.",
			"direction"),
		entries: newCounter("entries_total", "Files, directories and symlinks copied, listed or removed.", "operation"),
		stage: newCounter("stage_seconds_total", "Elapsed seconds of copies, divided among the stages in which their "+
			"lanes spent the time.", "stage"),
		depth: newHistogram("engine_depth", "Chunks that a copy may have in flight in the engine.",
			[]float64{1, 2, 4, 8, 16, 32, 64, 128}),
		retransmits: newCounter("retransmitted_chunks_total", "Chunks sent again after a checksum mismatch."),
		limited:     newCounter("limited_total", "Connections and requests refused or ended by a limit.", "what"),
		panics:      newCounter("panics_total", "Connections ended by a defect of dma-copy."),
	}
	m.prepare()
	return m
}

// namespace is what the names of all metrics of the daemon begin with.
const namespace = "dma_copy_"

// crashCode is the exit code of Go's runtime, which no request ends with.
const crashCode = 2

// prepare makes the series that a daemon can have with the value 0, so that the first event is an increase.
func (m *Metrics) prepare() {
	m.depth.prepare()
	for _, operation := range operations {
		for code := exit.OK; code <= exit.Limit; code++ {
			if code != crashCode {
				m.requests.prepare(strconv.Itoa(code), string(operation))
			}
		}
		m.seconds.prepare(string(operation))
		if operation != service.Ping && operation != dryRun {
			m.entries.prepare(string(operation))
		}
	}
	for _, reason := range []string{"key", "lost", "protocol", "limit", "connection", "other"} {
		m.authFailures.prepare(reason)
	}
	for _, stage := range stages {
		m.stage.prepare(stage)
	}
	for _, what := range []string{"connection", "request"} {
		m.limited.prepare(what)
	}
}

// text returns all metrics in the text format of Prometheus.
func (m *Metrics) text() string {
	var text strings.Builder
	status := m.status()
	copied := m.traffic.Count(status)
	m.bytes.set(float64(copied.Received), "received")
	m.bytes.set(float64(copied.Sent), "sent")
	for _, f := range []*family{
		m.connections, m.authFailures, m.requests, m.seconds, m.bytes, m.entries, m.stage, m.depth, m.retransmits,
		m.limited, m.panics,
	} {
		f.write(&text)
	}
	writeGauges(&text, m.software, status)
	writeProcess(&text)
	return text.String()
}

// Connected implements service.Observer.
func (m *Metrics) Connected(service.Session) { m.connections.add(1) }

// Authenticated implements service.Observer.
func (*Metrics) Authenticated(service.Session) {}

// Refused implements service.Observer.
func (m *Metrics) Refused(_ service.Session, code int, _ error) {
	m.authFailures.add(1, reasonOf(code))
	if code == exit.Limit {
		m.limited.add(1, "connection")
	}
}

// ConnectionRefused counts a connection of another machine that ended before it was one of the Server: it does not
// speak TLS, belongs to none of the peers, or was one too many.
func (m *Metrics) ConnectionRefused() { m.authFailures.add(1, "connection") }

// reasonOf is the label for an exit code.
func reasonOf(code int) string {
	switch code {
	case refusedCode:
		return "key"
	case exit.Peer:
		return "lost"
	case exit.Protocol:
		return "protocol"
	case exit.Limit:
		return "limit"
	default:
		return "other"
	}
}

// Began implements service.Observer.
func (m *Metrics) Began(r service.Record) { m.traffic.Began(r) }

// Ended implements service.Observer.
func (m *Metrics) Ended(r service.Record) {
	operation := string(r.Operation)
	if r.DryRun {
		operation = string(dryRun)
	}
	m.requests.add(1, strconv.Itoa(r.Code), operation)
	m.seconds.observe(r.Duration.Seconds(), operation)
	if r.Code == exit.Limit {
		m.limited.add(1, "request")
	}
	if r.Operation.Copies() {
		m.traffic.Ended(r)
	}
	if r.Operation == service.Ping || r.DryRun {
		return
	}
	m.entries.add(float64(r.Entries), operation)
	if !r.Operation.Copies() {
		return
	}
	m.retransmits.add(float64(r.Summary.Retries))
	if r.Summary.Depth > 0 {
		m.depth.observe(float64(r.Summary.Depth))
	}
	for stage, name := range stages {
		m.stage.add(r.Summary.Shares[stage]*r.Summary.Elapsed.Seconds(), name)
	}
}

// Disconnected implements service.Observer.
func (*Metrics) Disconnected(service.Session, error) {}

// Bug implements service.Observer.
func (m *Metrics) Bug(service.Session, any, []byte) { m.panics.add(1) }
