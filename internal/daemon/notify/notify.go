// Package notify tells the service manager the state of a daemon, by the protocol of sd_notify(3).
//
// The socket is opened once, before the daemon is confined: afterwards the kernel may refuse to connect to a socket
// outside the sandbox.
package notify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Manager is the service manager that has started this process. Its methods are safe for concurrent use, and do
// nothing if there is none. That the manager cannot be told something is logged once; the daemon works without.
type Manager struct {
	log      zerolog.Logger
	interval time.Duration // of the watchdog; 0: there is none

	mu     sync.Mutex
	conn   net.Conn // nil: nobody is told
	failed bool
}

// Connect connects to the service manager that the environment names. Without $NOTIFY_SOCKET there is none. The
// variables may also be left over from another process, so a mistake in them is only logged. variable returns a
// variable of the environment, or "".
func Connect(variable func(name string) string, pid int, log zerolog.Logger) *Manager {
	m := &Manager{log: log}
	path := variable("NOTIFY_SOCKET")
	if path == "" {
		return m
	}
	var err error
	if m.conn, err = dial(path); err != nil {
		m.warn(err)
		return m
	}
	m.interval, err = watchdogInterval(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), pid)
	if err != nil {
		m.warn(err)
	}
	return m
}

func dial(path string) (net.Conn, error) {
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %s, neither an absolute path nor an abstract address",
			quote.Text(path))
	}
	return net.Dial("unixgram", path)
}

func (m *Manager) warn(err error) {
	m.log.Warn().Err(err).Msg("the service manager cannot be told the state of the daemon")
}

// watchdogInterval returns the time within which the service manager wants a sign of life, or 0.
func watchdogInterval(microseconds, of string, pid int) (time.Duration, error) {
	if microseconds == "" || of != "" && of != strconv.Itoa(pid) {
		return 0, nil
	}
	n, err := strconv.ParseInt(microseconds, 10, 64)
	if err != nil || n <= 0 || n > int64(24*time.Hour/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC is %s: it is not a time in microseconds up to a day",
			quote.Text(microseconds))
	}
	return time.Duration(n) * time.Microsecond, nil
}

// Ready says that the daemon answers requests, at first and after Reloading.
func (m *Manager) Ready() { m.send("READY=1") }

// Reloading says that the daemon reads its configuration again. Ready follows.
func (m *Manager) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return // it has no reason to fail, and without the time the message is not valid
	}
	m.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond)))
}

// Stopping says that the daemon takes no more requests.
func (m *Manager) Stopping() { m.send("STOPPING=1") }

// Watchdog sends signs of life until ctx ends, twice in each interval that the service manager wants. Before each it
// calls alive, which takes the locks that everything else takes: as long as that does not return, there is no sign, and
// the service manager restarts the daemon. A call that takes too long is logged as an error. Watchdog returns at once
// if there is no watchdog.
func (m *Manager) Watchdog(ctx context.Context, alive func()) {
	if m.interval == 0 {
		return
	}
	ticks := time.NewTicker(m.interval / 2)
	defer ticks.Stop()
	for {
		late := time.AfterFunc(m.interval/2, func() {
			m.log.Error().Msg("the daemon does not answer; the service manager gets no sign of life")
		})
		alive()
		late.Stop()
		if ctx.Err() == nil {
			m.send("WATCHDOG=1")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// sendTimeout bounds the wait for a service manager that reads nothing, and whose queue is full.
const sendTimeout = time.Second

func (m *Manager) send(message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == nil {
		return
	}
	err := m.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = m.conn.Write([]byte(message))
	}
	if err != nil && !m.failed {
		m.failed = true
		m.warn(err)
	}
}

// Close closes the connection.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	conn := m.conn
	m.conn = nil
	if conn == nil {
		return nil
	}
	return conn.Close()
}
