package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
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

var operations = []service.Operation{service.Push, service.Pull, service.List, service.Remove, service.Ping}

// Metrics counts what a Server does, as its service.Observer.
type Metrics struct {
	registry *prometheus.Registry

	connections  prometheus.Counter
	authFailures *prometheus.CounterVec
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	bytes        *prometheus.CounterVec
	entries      *prometheus.CounterVec
	stage        *prometheus.CounterVec
	depth        prometheus.Histogram
	retransmits  prometheus.Counter
	limited      *prometheus.CounterVec
	panics       prometheus.Counter
}

var _ service.Observer = (*Metrics)(nil)

// New returns metrics that are all 0. software is the name and version of this program. status is called for each
// request of the metrics, by any goroutine.
func New(software string, status func() service.Status) *Metrics {
	m := &Metrics{
		registry:    prometheus.NewRegistry(),
		connections: counter("connections_total", "Connections accepted."),
		authFailures: counters("auth_failures_total",
			"Connections that ended before they were authenticated, by reason.", "reason"),
		requests: counters("requests_total",
			"Requests that ended, by operation and exit code; 0 is success.", "operation", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    namespace + "request_seconds",
			Help:    "Duration of requests in seconds, including the time in the queue.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60, 600, 3600},
		}, []string{"operation"}),
		bytes: counters("bytes_total", "Bytes copied, by direction as this daemon sees it.", "direction"),
		entries: counters("entries_total", "Files, directories and symlinks copied, listed or removed.",
			"operation"),
		stage: counters("stage_seconds_total", "Elapsed seconds of copies, divided among the stages in which their "+
			"lanes spent the time.", "stage"),
		depth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: namespace + "engine_depth", Help: "Chunks that a copy may have in flight in the engine.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		}),
		retransmits: counter("retransmitted_chunks_total", "Chunks sent again after a checksum mismatch."),
		limited:     counters("limited_total", "Connections and requests refused or ended by a limit.", "what"),
		panics:      counter("panics_total", "Connections ended by a defect of dma-copy."),
	}
	m.registry.MustRegister(m.connections, m.authFailures, m.requests, m.seconds, m.bytes, m.entries, m.stage, m.depth,
		m.retransmits, m.limited, m.panics, newGauges(software, status),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.prepare()
	return m
}

// namespace is what the names of all metrics of the daemon begin with.
const namespace = "dma_copy_"

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: namespace + name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: namespace + name, Help: help}, labels)
}

// prepare makes the usual series with the value 0, so that the first event is an increase.
func (m *Metrics) prepare() {
	for _, operation := range operations {
		m.requests.WithLabelValues(string(operation), "0")
		m.seconds.WithLabelValues(string(operation))
		if operation != service.Ping {
			m.entries.WithLabelValues(string(operation))
		}
	}
	for _, reason := range []string{"key", "lost", "protocol", "limit", "connection", "other"} {
		m.authFailures.WithLabelValues(reason)
	}
	for _, stage := range stages {
		m.stage.WithLabelValues(stage)
	}
	for _, what := range []string{"connection", "request"} {
		m.limited.WithLabelValues(what)
	}
	m.bytes.WithLabelValues("received")
	m.bytes.WithLabelValues("sent")
}

// Connected implements service.Observer.
func (m *Metrics) Connected(service.Session) { m.connections.Inc() }

// Authenticated implements service.Observer.
func (*Metrics) Authenticated(service.Session) {}

// Refused implements service.Observer.
func (m *Metrics) Refused(_ service.Session, code int, _ error) {
	m.authFailures.WithLabelValues(reasonOf(code)).Inc()
	if code == exit.Limit {
		m.limited.WithLabelValues("connection").Inc()
	}
}

// ConnectionRefused counts a connection of another machine that ended before it was one of the Server: it does not
// speak TLS, belongs to none of the peers, or was one too many.
func (m *Metrics) ConnectionRefused() { m.authFailures.WithLabelValues("connection").Inc() }

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
func (*Metrics) Began(service.Record) {}

// Ended implements service.Observer.
func (m *Metrics) Ended(r service.Record) {
	operation := string(r.Operation)
	m.requests.WithLabelValues(operation, strconv.Itoa(r.Code)).Inc()
	m.seconds.WithLabelValues(operation).Observe(r.Duration.Seconds())
	if r.Code == exit.Limit {
		m.limited.WithLabelValues("request").Inc()
	}
	if r.Operation == service.Ping {
		return
	}
	m.entries.WithLabelValues(operation).Add(atLeastZero(r.Entries))
	switch r.Operation {
	case service.Push:
		m.bytes.WithLabelValues("received").Add(atLeastZero(r.Bytes))
	case service.Pull:
		m.bytes.WithLabelValues("sent").Add(atLeastZero(r.Bytes))
	default:
		return
	}
	m.retransmits.Add(atLeastZero(r.Summary.Retries))
	if r.Summary.Depth > 0 {
		m.depth.Observe(float64(r.Summary.Depth))
	}
	for stage, name := range stages {
		m.stage.WithLabelValues(name).Add(max(0, r.Summary.Shares[stage]*r.Summary.Elapsed.Seconds()))
	}
}

// atLeastZero protects a counter, which panics if it is to decrease.
func atLeastZero(n int64) float64 { return float64(max(n, 0)) }

// Disconnected implements service.Observer.
func (*Metrics) Disconnected(service.Session, error) {}

// Bug implements service.Observer.
func (m *Metrics) Bug(service.Session, any, []byte) { m.panics.Inc() }
