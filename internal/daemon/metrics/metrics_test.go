package metrics

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

// After it has refused a request that is too long, the HTTP server waits half a second in this function.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

func idle() service.Status { return service.Status{} }

func mustListen(t *testing.T, m *Metrics, address string) *Server {
	t.Helper()
	s, err := m.Listen(address, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// get sends a request to the server and returns its status and body.
func get(t *testing.T, s *Server, method, path string) (code int, body string) {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, s.Addr().Network(), s.Addr().String())
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://daemon"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// scrape returns the lines of the daemon's own metrics.
func scrape(t *testing.T, s *Server) map[string]bool {
	t.Helper()
	code, body := get(t, s, http.MethodGet, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, namespace) {
			lines[strings.TrimSuffix(line, "\n")] = true
		}
	}
	return lines
}

func TestMetricsOfADaemon(t *testing.T) {
	m := New("1.0 \"rc\"", func() service.Status {
		return service.Status{
			Draining: true, Connections: make([]service.ConnectionStatus, 2), Pending: 3,
			Running: 4, Waiting: 5, Memory: 6, TrustedKeys: 7,
			Limits: service.Limits{Connections: 8, Transfers: 9, Memory: 10},
		}
	})
	for range 3 {
		m.Connected(service.Session{})
	}
	m.Authenticated(service.Session{})
	m.Disconnected(service.Session{}, nil)
	for _, code := range []int{exit.Refused, exit.Peer, exit.Protocol, exit.Limit, exit.Failure} {
		m.Refused(service.Session{}, code, errors.New("refused"))
	}
	shares := pump.Shares{}
	shares[pump.Reading], shares[pump.Copying] = 0.25, 0.75
	m.Ended(service.Record{
		Operation: service.Push, Bytes: 100, Entries: 2, Duration: 5 * time.Second,
		Summary: job.Summary{Elapsed: 4 * time.Second, Depth: 16, Retries: 3, Shares: shares},
	})
	m.Ended(service.Record{Operation: service.Pull, Bytes: 10, Entries: 1, Code: exit.Limit, Err: errors.New("limit")})
	plan := service.Record{
		Operation: service.Push, DryRun: true, Duration: 2 * time.Second,
		Summary: job.Summary{Elapsed: 4 * time.Second, Depth: 16, Retries: 3, Shares: shares, DryRun: true},
	}
	m.Began(plan)
	m.Ended(plan)
	m.Ended(service.Record{Operation: service.List, Entries: 9})
	m.Ended(service.Record{Operation: service.Ping, Bytes: 64})
	m.Ended(service.Record{Operation: service.Pull, Bytes: -1, Entries: -1, Code: 5}) // a defect elsewhere
	m.Bug(service.Session{}, "panic", nil)

	lines := scrape(t, mustListen(t, m, "127.0.0.1:0"))
	for _, want := range []string{
		`dma_copy_build_info{version="1.0 \"rc\""} 1`, "dma_copy_draining 1",
		"dma_copy_connections 2", "dma_copy_pending_connections 3", "dma_copy_running_transfers 4",
		"dma_copy_waiting_transfers 5", "dma_copy_memory_bytes 6", "dma_copy_trusted_keys 7",
		"dma_copy_connections_limit 8", "dma_copy_transfers_limit 9", "dma_copy_memory_limit_bytes 10",
		"dma_copy_connections_total 3",
		`dma_copy_auth_failures_total{reason="key"} 1`, `dma_copy_auth_failures_total{reason="lost"} 1`,
		`dma_copy_auth_failures_total{reason="protocol"} 1`, `dma_copy_auth_failures_total{reason="limit"} 1`,
		`dma_copy_auth_failures_total{reason="other"} 1`,
		`dma_copy_limited_total{what="connection"} 1`, `dma_copy_limited_total{what="request"} 1`,
		`dma_copy_requests_total{code="0",operation="push"} 1`, `dma_copy_requests_total{code="14",operation="pull"} 1`,
		`dma_copy_requests_total{code="5",operation="pull"} 1`, `dma_copy_requests_total{code="0",operation="ping"} 1`,
		`dma_copy_requests_total{code="0",operation="remove"} 0`,
		`dma_copy_request_duration_seconds_sum{operation="push"} 5`,
		`dma_copy_request_duration_seconds_bucket{operation="push",le="1"} 0`,
		`dma_copy_request_duration_seconds_bucket{operation="push",le="10"} 1`,
		`dma_copy_bytes_total{direction="received"} 100`, `dma_copy_bytes_total{direction="sent"} 10`,
		`dma_copy_requests_total{code="0",operation="dry_run"} 1`,
		`dma_copy_request_duration_seconds_sum{operation="dry_run"} 2`, "dma_copy_engine_depth_count 1",
		`dma_copy_entries_total{operation="push"} 2`, `dma_copy_entries_total{operation="list"} 9`,
		`dma_copy_stage_seconds_total{stage="read"} 1`, `dma_copy_stage_seconds_total{stage="copy"} 3`,
		`dma_copy_stage_seconds_total{stage="rate_limit"} 0`,
		`dma_copy_engine_depth_bucket{le="8"} 0`, `dma_copy_engine_depth_bucket{le="16"} 1`,
		"dma_copy_retransmitted_chunks_total 3", "dma_copy_panics_total 1",
	} {
		if !lines[want] {
			t.Errorf("no line %s", want)
		}
	}
	if lines[`dma_copy_requests_total{code="2",operation="push"} 0`] {
		t.Error("there is a series for code 2, which no request ends with")
	}
	if t.Failed() {
		for line := range lines {
			t.Log(line)
		}
	}
}

// The bytes of running copies count while they run, and not again at their end.
func TestBytesOfRunningCopies(t *testing.T) {
	running := service.Record{Session: service.Session{ID: 1}, Request: 1, Operation: service.Push}
	status := service.Status{Connections: []service.ConnectionStatus{{Request: &running, Moved: 60}}}
	m := New("", func() service.Status { return status })
	s := mustListen(t, m, "127.0.0.1:0")
	m.Began(running)
	if lines := scrape(t, s); !lines[`dma_copy_bytes_total{direction="received"} 60`] {
		t.Errorf("while it runs: %v", lines)
	}
	status.Connections = nil
	running.Bytes = 100
	m.Ended(running)
	if lines := scrape(t, s); !lines[`dma_copy_bytes_total{direction="received"} 100`] {
		t.Errorf("at its end: %v", lines)
	}
}

// Each stage of a copy has a name here, too.
func TestStages(t *testing.T) {
	if got := len(pump.Shares{}); len(stages) != got {
		t.Errorf("%d stages have names, want %d", len(stages), got)
	}
	for stage, name := range stages {
		if want := strings.ReplaceAll(stage.String(), " ", "_"); name != want {
			t.Errorf("stage %s is %s", want, name)
		}
	}
}

// typesOf returns the types of all metrics in a text of Prometheus, each of which is to be declared once.
func typesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	types := map[string]string{}
	for line := range strings.Lines(text) {
		declared, is := strings.CutPrefix(line, "# TYPE ")
		if !is {
			continue
		}
		name, kind, _ := strings.Cut(strings.TrimSuffix(declared, "\n"), " ")
		if types[name] != "" {
			t.Errorf("%s is declared twice", name)
		}
		types[name] = kind
	}
	return types
}

// Each metric of the daemon is described, and no other.
func TestMetricsAreDescribed(t *testing.T) {
	_, text := get(t, mustListen(t, New("", idle), "127.0.0.1:0"), http.MethodGet, "/metrics")
	served := typesOf(t, text)
	described := map[string]bool{}
	for _, d := range Descriptions {
		described[d.Name] = true
		if !strings.Contains("\n"+text, "\n# HELP "+d.Name+" "+d.Text+"\n# TYPE ") {
			t.Errorf("%s is not served with its help", d.Name)
		}
	}
	for name := range served {
		if strings.HasPrefix(name, namespace) && !described[name] {
			t.Errorf("%s is not described", name)
		}
	}
}

// The metrics of the process are those that Prometheus's dashboards expect.
func TestProcess(t *testing.T) {
	_, text := get(t, mustListen(t, New("", idle), "127.0.0.1:0"), http.MethodGet, "/metrics")
	types := typesOf(t, text)
	for name, want := range map[string]string{
		"process_start_time_seconds": "gauge", "process_resident_memory_bytes": "gauge", "process_open_fds": "gauge",
		"process_max_fds": "gauge", "process_cpu_seconds_total": "counter", "go_goroutines": "gauge",
		"go_threads": "gauge", "go_info": "gauge", namespace + "requests_total": "counter",
		namespace + "request_duration_seconds": "histogram", namespace + "stage_seconds_total": "counter",
	} {
		if types[name] != want {
			t.Errorf("%s is a %q, want %q", name, types[name], want)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.sock")
	s := mustListen(t, New("", idle), "unix:"+path)
	if lines := scrape(t, s); !lines["dma_copy_connections 0"] {
		t.Errorf("got %v", lines)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
}

// There is nothing but the metrics, and nothing can be changed.
func TestOtherRequestsAreRefused(t *testing.T) {
	s := mustListen(t, New("", idle), "[::1]:0")
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", http.StatusNotFound},
		{http.MethodGet, "/debug/vars", http.StatusNotFound},
		{http.MethodPost, "/metrics", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/metrics", http.StatusMethodNotAllowed},
	} {
		if code, _ := get(t, s, test.method, test.path); code != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, code, test.want)
		}
	}
}

// A page is served beside the metrics, and not in their place.
func TestPageBesideTheMetrics(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page "+r.URL.Path) // the client has read it, or the test fails
	})
	s, err := New("", idle).Listen("127.0.0.1:0", page, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, want := range map[string]string{"/": "page /", "/x": "page /x", "/metrics": "# HELP "} {
		if code, body := get(t, s, http.MethodGet, path); code != http.StatusOK || !strings.HasPrefix(body, want) {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := get(t, s, http.MethodPost, "/metrics"); code == http.StatusOK {
		t.Error("the metrics were posted to")
	}
}

// Requests that wait for the daemon do not add up.
func TestRequestsAtOnce(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := mustListen(t, New("", func() service.Status {
		asked <- struct{}{}
		<-answer
		return service.Status{}
	}), "127.0.0.1:0")
	codes := make(chan int)
	for range atOnce {
		go func() {
			response, err := http.Get("http://" + s.Addr().String() + "/metrics")
			if err != nil {
				t.Error(err)
				codes <- 0
				return
			}
			_ = response.Body.Close()
			codes <- response.StatusCode
		}()
		<-asked
	}
	if code, _ := get(t, s, http.MethodGet, "/metrics"); code != http.StatusServiceUnavailable {
		t.Errorf("one more request: %d", code)
	}
	close(answer)
	for range atOnce {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request that waited: %d", code)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestPublicAddressesAreRefused(t *testing.T) {
	m := New("", idle)
	for _, address := range []string{
		"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "localhost:0", "127.0.0.1", "example.com:9469", "",
		"[::ffff:192.0.2.1]:0",
	} {
		s, err := m.Listen(address, nil, zerolog.Nop())
		var coder exit.Coder
		if !errors.As(err, &coder) || coder.ExitCode() != exit.Usage || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%q: got %v", address, err)
		}
		if err == nil {
			_ = s.Close() // the test has failed
		}
	}
	taken := mustListen(t, m, "127.0.0.1:0")
	_, err := m.Listen(taken.Addr().String(), nil, zerolog.Nop())
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a port that is taken: got %v", err)
	}
}

// What the libraries report is a warning of the daemon's log on one line, also what comes from a panic of a handler.
func TestReportsOfLibraries(t *testing.T) {
	written, write := io.Pipe()
	defer written.Close()
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a defect") })
	s, err := New("", idle).Listen("127.0.0.1:0", page, zerolog.New(write))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lines := bufio.NewScanner(written)
	mustWarn := func(text string) {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"level":"warn","message":"`+text) {
			t.Errorf("logged %q, want a warning of %s", lines.Text(), text)
		}
	}
	go log.Printf("ERROR: metrics: cannot open %s", "stat")
	mustWarn(`ERROR: metrics: cannot open stat"}`)
	go func() {
		response, err := http.Get("http://" + s.Addr().String() + "/")
		if err == nil {
			_ = response.Body.Close() // the connection ends without an answer
		}
	}()
	mustWarn("http: panic serving 127.0.0.1:")
}

// A client that sends nothing, or half of a request, is disconnected; one that sends a long one is refused.
func TestHTTPLimits(t *testing.T) {
	s := mustListen(t, New("", idle), "127.0.0.1:0")
	if h := s.http; h.ReadHeaderTimeout != readTimeout || h.ReadTimeout != readTimeout ||
		h.WriteTimeout != writeTimeout || h.IdleTimeout != idleTimeout {
		t.Errorf("timeouts are missing: %+v", h)
	}
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "GET /metrics HTTP/1.1\r\nHost: daemon\r\nX-Long: " + strings.Repeat("x", 4*largestHead) + "\r\n\r\n"
	_, _ = io.WriteString(conn, head) // the server may hang up before its end
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(answer, "431") {
		t.Errorf("got %q", answer)
	}
}
