package notify

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pid = 4711

func environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// listen returns the socket of a service manager.
func listen(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func receive(t *testing.T, from *net.UnixConn) string {
	t.Helper()
	message := make([]byte, 4096)
	n, err := from.Read(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(message[:n])
}

func TestMessages(t *testing.T) {
	path, abstract := filepath.Join(t.TempDir(), "notify"), "@dma-copy-notify-test-"+strconv.Itoa(os.Getpid())
	for _, path := range []string{path, abstract} {
		manager := listen(t, path)
		m := Connect(environment(map[string]string{"NOTIFY_SOCKET": path}), pid, zerolog.Nop())
		for _, test := range []struct {
			send func()
			want string
		}{
			{m.Ready, "READY=1"},
			{m.Stopping, "STOPPING=1"},
		} {
			test.send()
			if got := receive(t, manager); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		}
		m.Reloading()
		if got := receive(t, manager); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("got %q", got)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		m.Ready() // after the end nothing is sent
	}
}

func TestWithoutManager(t *testing.T) {
	m := Connect(environment(nil), pid, zerolog.Nop())
	m.Ready()
	m.Watchdog(t.Context(), func() { t.Error("alive was called") })
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A daemon whose environment is wrong says so once, and runs.
func TestBadEnvironment(t *testing.T) {
	path, stream := filepath.Join(t.TempDir(), "notify"), filepath.Join(t.TempDir(), "stream")
	listen(t, path)
	listener, err := net.Listen("unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, variables := range []map[string]string{
		{"NOTIFY_SOCKET": "relative"},
		{"NOTIFY_SOCKET": "vsock:2:1234"},
		{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "absent")},
		{"NOTIFY_SOCKET": stream},
		{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "soon"},
		{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "0"},
		{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "9223372036854775807"},
	} {
		var log bytes.Buffer
		m := Connect(environment(variables), pid, zerolog.New(&log))
		m.Ready()
		m.Watchdog(t.Context(), func() { t.Error("alive was called") })
		if got := strings.Count(log.String(), "service manager"); got != 1 {
			t.Errorf("%v: %d reports, want 1: %s", variables, got, &log)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A service manager that reads nothing does not stop the daemon.
func TestManagerThatReadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	listen(t, path)
	var log bytes.Buffer
	m := Connect(environment(map[string]string{"NOTIFY_SOCKET": path}), pid, zerolog.New(&log))
	for log.Len() == 0 {
		m.Ready()
	}
	if got := log.String(); !strings.Contains(got, "timeout") {
		t.Errorf("got %s", got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestWatchdogInterval(t *testing.T) {
	for _, test := range []struct {
		of   string
		want time.Duration
	}{{"", 2 * time.Second}, {"4711", 2 * time.Second}, {"1", 0}} {
		got, err := watchdogInterval("2000000", test.of, pid)
		if err != nil || got != test.want {
			t.Errorf("of process %q: got %s, %v; want %s", test.of, got, err, test.want)
		}
	}
}

// recorder stands for the connection to the service manager.
type recorder struct {
	net.Conn
	sent []string
	err  error
}

func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func (r *recorder) Write(message []byte) (int, error) {
	r.sent = append(r.sent, string(message))
	return len(message), r.err
}

// Signs of life are sent twice in an interval while the daemon answers, and not otherwise, which is logged.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		conn := &recorder{}
		m := &Manager{log: zerolog.New(&log), interval: 2 * time.Second, conn: conn}
		ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond)
		defer cancel()
		checks := 0
		m.Watchdog(ctx, func() {
			if checks++; checks == 4 {
				time.Sleep(2500 * time.Millisecond) // a daemon that does not answer
			}
		})
		// At 0, 1, 2, 5.5, 5.5, 6, 7, 8 and 9 s.
		if len(conn.sent) != 9 || conn.sent[0] != "WATCHDOG=1" {
			t.Errorf("sent %q in %d checks", conn.sent, checks)
		}
		if got := strings.Count(log.String(), "no sign of life"); got != 1 {
			t.Errorf("%d reports, want 1: %s", got, &log)
		}
	})
}

func TestFailureIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	m := &Manager{log: zerolog.New(&log), conn: &recorder{err: errors.New("gone")}}
	m.Ready()
	m.Stopping()
	if got := strings.Count(log.String(), "service manager"); got != 1 {
		t.Errorf("%d reports, want 1: %s", got, &log)
	}
}
