// Package metrics counts what a daemon does and serves the numbers to Prometheus, on a loopback address or a unix
// socket. docs/reference/metrics.md lists the metrics.
//
// Next to it there is at most the status page of package page: no profiles, and nothing that changes the daemon. All
// label values are of small fixed sets, so that no peer can add time series.
package metrics

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"github.com/dma-copy/dma-copy/internal/daemon/traffic"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

// stages are the values of the label stage, by pump.Stage.
var stages = map[pump.Stage]string{
	pump.Reading: "read", pump.Checking: "digest", pump.Copying: "copy", pump.Writing: "write", pump.Peer: "peer",
	pump.RateLimit: "rate_limit",
}

// dryRun is the label for pushes and pulls that transfer nothing.
const dryRun service.Operation = "dry_run"

var operations = append(service.Operations(), dryRun)

// hasEntries reports whether requests of an operation are about entries.
func hasEntries(o service.Operation) bool { return o.HasPlace() && o != dryRun }

// reasons are values of the label reason, by exit code.
var reasons = map[int]string{
	exit.Refused: "key", exit.Peer: "lost", exit.Protocol: "protocol", exit.Limit: "limit",
}

// namespace is what the names of all metrics of the daemon begin with.
const namespace = "dma_copy_"

// The upper bounds of the buckets of histograms.
var (
	durations = []float64{.001, .01, .1, 1, 10, 60, 600, 3600} // seconds
	depths    = []float64{1, 2, 4, 8, 16, 32, 64, 128}         // chunks
)

// Metrics counts what a Server does, as its service.Observer.
type Metrics struct {
	version string
	status  func() service.Status
	traffic *traffic.Counter
	set     *metrics.Set

	mu sync.Mutex // between a count of the traffic and the counters of it, so that they never decrease
}

var _ service.Observer = (*Metrics)(nil)

// New returns metrics that are all 0. version is the version of this program. status is called for each request of the
// metrics, by any goroutine.
func New(version string, status func() service.Status) *Metrics {
	metrics.ExposeMetadata(true)
	m := &Metrics{version: version, status: status, traffic: traffic.NewCounter(), set: metrics.NewSet()}
	m.prepare()
	return m
}

// crashCode is the exit code of Go's runtime, which no request ends with.
const crashCode = 2

// prepare makes the series that a daemon can have with the value 0, so that the first event is an increase.
func (m *Metrics) prepare() {
	for _, name := range []string{"connections_total", "retransmitted_chunks_total", "panics_total"} {
		m.add(0, name)
	}
	m.histogram(depths, "engine_depth")
	for _, operation := range operations {
		for code := exit.OK; code <= exit.Limit; code++ {
			if code != crashCode {
				m.add(0, "requests_total", "code", strconv.Itoa(code), "operation", string(operation))
			}
		}
		m.histogram(durations, "request_duration_seconds", "operation", string(operation))
		if hasEntries(operation) {
			m.add(0, "entries_total", "operation", string(operation))
		}
	}
	for _, reason := range slices.AppendSeq([]string{"connection", "other"}, maps.Values(reasons)) {
		m.add(0, "auth_failures_total", "reason", reason)
	}
	for _, stage := range stages {
		m.addSeconds(0, "stage_seconds_total", "stage", stage)
	}
	for _, what := range []string{"connection", "request"} {
		m.add(0, "limited_total", "what", what)
	}
}

// add increases a counter. A negative amount, which is a defect elsewhere, counts as 0.
func (m *Metrics) add(amount int64, name string, labels ...string) {
	m.set.GetOrCreateCounter(series(name, labels...)).AddInt64(max(amount, 0))
}

func (m *Metrics) addSeconds(seconds float64, name string, labels ...string) {
	m.set.GetOrCreateFloatCounter(series(name, labels...)).Add(seconds)
}

func (m *Metrics) histogram(bounds []float64, name string, labels ...string) *metrics.PrometheusHistogram {
	return m.set.GetOrCreatePrometheusHistogramExt(series(name, labels...), bounds)
}

// series returns the name of a series, from names of labels and their values in turn.
func series(name string, labels ...string) string {
	pairs := make([]string, 0, len(labels)/2)
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	if len(pairs) == 0 {
		return namespace + name
	}
	return namespace + name + "{" + strings.Join(pairs, ",") + "}"
}

// write writes all metrics in the text format of Prometheus.
func (m *Metrics) write(to io.Writer) {
	status := m.status()
	m.countBytes(status)
	to = &described{to}
	m.set.WritePrometheus(to)
	draining := uint64(0)
	if status.Draining {
		draining = 1
	}
	gauge := func(name string, value uint64) { metrics.WriteGaugeUint64(to, namespace+name, value) }
	metrics.WriteGaugeUint64(to, series("build_info", "version", m.version), 1)
	gauge("connections", uint64(len(status.Connections)))
	gauge("pending_connections", uint64(status.Pending))
	gauge("running_transfers", uint64(status.Running))
	gauge("waiting_transfers", uint64(status.Waiting))
	gauge("memory_bytes", uint64(status.Memory))
	gauge("connections_limit", uint64(status.Limits.Connections))
	gauge("transfers_limit", uint64(status.Limits.Transfers))
	gauge("memory_limit_bytes", uint64(status.Limits.Memory))
	gauge("trusted_keys", uint64(status.TrustedKeys))
	gauge("draining", draining)
	metrics.WriteProcessMetrics(to)
	metrics.WriteFDMetrics(to)
}

// countBytes brings the counters of the traffic up to date.
func (m *Metrics) countBytes(status service.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := m.traffic.Count(status)
	m.set.GetOrCreateCounter(series("bytes_total", "direction", "received")).Set(uint64(copied.Received))
	m.set.GetOrCreateCounter(series("bytes_total", "direction", "sent")).Set(uint64(copied.Sent))
}

// Connected implements service.Observer.
func (m *Metrics) Connected(service.Session) { m.add(1, "connections_total") }

// Authenticated implements service.Observer.
func (*Metrics) Authenticated(service.Session) {}

// Refused implements service.Observer.
func (m *Metrics) Refused(_ service.Session, code int, _ error) {
	m.add(1, "auth_failures_total", "reason", cmp.Or(reasons[code], "other"))
	if code == exit.Limit {
		m.add(1, "limited_total", "what", "connection")
	}
}

// ConnectionRefused counts a connection of another machine that ended before it was one of the Server: it does not
// speak TLS, belongs to none of the peers, or was one too many.
func (m *Metrics) ConnectionRefused() { m.add(1, "auth_failures_total", "reason", "connection") }

// Began implements service.Observer.
func (m *Metrics) Began(r service.Record) { m.traffic.Began(r) }

// Ended implements service.Observer.
func (m *Metrics) Ended(r service.Record) {
	operation := string(r.Operation)
	if r.DryRun {
		operation = string(dryRun)
	}
	m.add(1, "requests_total", "code", strconv.Itoa(r.Code), "operation", operation)
	m.histogram(durations, "request_duration_seconds", "operation", operation).Update(r.Duration.Seconds())
	if r.Code == exit.Limit {
		m.add(1, "limited_total", "what", "request")
	}
	if r.Operation.Copies() {
		m.traffic.Ended(r)
	}
	if !hasEntries(r.Operation) || r.DryRun {
		return
	}
	m.add(r.Entries, "entries_total", "operation", operation)
	if !r.Operation.Copies() {
		return
	}
	m.add(int64(r.Summary.Retries), "retransmitted_chunks_total")
	if r.Summary.Depth > 0 {
		m.histogram(depths, "engine_depth").Update(float64(r.Summary.Depth))
	}
	for stage, name := range stages {
		m.addSeconds(r.Summary.Shares[stage]*r.Summary.Elapsed.Seconds(), "stage_seconds_total", "stage", name)
	}
}

// Disconnected implements service.Observer.
func (*Metrics) Disconnected(service.Session, error) {}

// Bug implements service.Observer.
func (m *Metrics) Bug(service.Session, any, []byte) { m.add(1, "panics_total") }
