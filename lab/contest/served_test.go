package contest

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"testing"
)

// asServer makes a process of this test binary the server of a test (main_test.go): its first argument says what it
// does after it has listened at the port.
func asServer(t *testing.T, does string) func(port int) child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(port int) child {
		return child{argv: []string{program, testServer, does, fmt.Sprint(port)}}
	}
}

// testServer is the first argument of a process that is a server of a test.
const testServer = "be-a-test-server"

// beTestServer listens at a port, writes to the first connection what it got as argument, and ends.
func beTestServer(does, port string) int {
	if does == "fail" {
		fmt.Fprintln(os.Stderr, "no port for me")
		return 3
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprint(conn, "served")
		conn.Close()
		if does == "end" {
			return 0
		}
	}
}

// fetch is a client that stores what the server has written.
func fetch(w *workspace) func(port int) child {
	return func(port int) child {
		script := fmt.Sprintf("cat < /dev/tcp/%s/%d > %s && echo 42", loopback, port, w.target())
		return child{argv: []string{"bash", "-c", script}}
	}
}

func newServedCopy(t *testing.T, does string) *servedCopy {
	t.Helper()
	w := newTestWorkspace(t, 6)
	return &servedCopy{
		task: fileTask{w.newConditions(6)}, size: 6, storing: true,
		servedTool: servedTool{
			server: asServer(t, does), client: fetch(w), ends: does == "end",
			copyTime: func(output []byte, size int64) (float64, error) {
				if string(output) != "42\n" || size != 6 {
					return 0, errors.New(string(output))
				}
				return 42, nil
			},
		},
	}
}

// The server runs before the client starts, and is gone after the run, whether it ends by itself or not.
func TestServedCopy(t *testing.T) {
	for _, does := range []string{"end", "stay"} {
		c := newServedCopy(t, does)
		for range 2 {
			if err := c.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			server := c.server
			run, err := c.Run(t.Context())
			if err != nil || run.Copy != 42 || run.Seconds <= 0 || run.CPU <= 0 {
				t.Errorf("%s: %+v, error %v", does, run, err)
			}
			if err := c.Check(t.Context(), false); err != nil {
				t.Errorf("%s: %v", does, err)
			}
			if err := server.command.Process.Signal(os.Kill); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("%s: the server runs after the copy (%v)", does, err)
			}
		}
	}
}

// The first copy of a repeated one has no prepare.
func TestServedCopyWithoutPrepare(t *testing.T) {
	c := newServedCopy(t, "stay")
	if _, err := c.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Check(t.Context(), false); err != nil {
		t.Error(err)
	}
}

func TestServerThatFails(t *testing.T) {
	err := newServedCopy(t, "fail").Prepare(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), ": ended before it listened: no port for me") {
		t.Errorf("error %v", err)
	}
}

// A client that fails does not leave its server behind.
func TestClientThatFails(t *testing.T) {
	for _, does := range []string{"end", "stay"} {
		c := newServedCopy(t, does)
		c.client = func(int) child { return child{argv: []string{"sh", "-c", "echo lost >&2; exit 1"}} }
		if err := c.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		server := c.server
		if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 1: lost") {
			t.Errorf("%s: error %v", does, err)
		}
		if server.command.ProcessState == nil {
			t.Errorf("%s: nobody has waited for the server", does)
		}
	}
}

// A copy from memory to memory leaves no target to check.
func TestServedCopyWithoutFiles(t *testing.T) {
	c := newServedCopy(t, "end")
	if err := c.Check(t.Context(), true); err == nil {
		t.Error("a missing target is accepted")
	}
	c.storing = false
	if err := c.Check(t.Context(), true); err != nil {
		t.Error(err)
	}
}

func TestListensIn(t *testing.T) {
	const table = "  sl  local_address rem_address   st\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n" +
		"   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000\n" +
		"   2: 00000000000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A\n"
	for port, want := range map[int]bool{8080: true, 8081: false, 443: true, 0: false} {
		if got := listensIn(table, port); got != want {
			t.Errorf("port %d: %t", port, got)
		}
	}
}

func TestReportsOfNetworkTools(t *testing.T) {
	const csv = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n" +
		" 512,0.892,22181.336,2648.385,22.54,256.00,45,378\n"
	for name, c := range map[string]struct {
		parse  func([]byte, int64) (float64, error)
		output string
		want   float64 // 0: an error
	}{
		"iperf3":             {iperfTime, `{"end": {"sum_sent": {"bits_per_second": 8388608}}}`, 512},
		"iperf3, no rate":    {iperfTime, `{"end": {}}`, 0},
		"iperf3, no report":  {iperfTime, "iperf3: error", 0},
		"ucx_perftest":       {activeMessageTime, csv, 2},
		"ucx_perftest, head": {activeMessageTime, strings.SplitAfter(csv, "\n")[0], 0},
		"ucx_perftest, none": {activeMessageTime, "", 0},
		"ucx_perftest, text": {activeMessageTime, "[1.2] \"UCX ERROR\n", 0},
	} {
		got, err := c.parse([]byte(c.output), 512<<20)
		if math.Abs(got-c.want) > 1e-9 || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %g, error %v", name, got, err)
		}
	}
}

// A tool that reports its own time is compared by that, because a connected command has no process to start either.
func TestNetworkRatios(t *testing.T) {
	results := []NetworkResult{
		{CopyResult: CopyResult{Contender: toolIperf, Seconds: spreadAt(3), CopySeconds: spreadAt(1)}, NoFiles: true},
		{CopyResult: CopyResult{Contender: programName, Seconds: spreadAt(2), CopySeconds: spreadAt(1)}},
		{CopyResult: CopyResult{Contender: programName, Error: "lost"}},
		{CopyResult: CopyResult{Contender: candidateRsyncDaemon, Seconds: spreadAt(4)}},
		{CopyResult: CopyResult{Contender: candidateSocatTLS, Error: "lost"}},
	}
	setNetworkRatios(results)
	for i, want := range []float64{1, 0.5, 0, 0.25, 0} {
		if got := results[i].Ratios[toolIperf]; got != want {
			t.Errorf("%d: ratio to iperf3 %g, want %g", i, got, want)
		}
	}
	if got := results[1].Ratios[candidateRsyncDaemon]; got != 2 {
		t.Errorf("ratio to the daemon of rsync %g", got)
	}
	if _, has := results[1].Ratios[candidateSocatTLS]; has {
		t.Error("there is a ratio to a candidate that failed")
	}
}
