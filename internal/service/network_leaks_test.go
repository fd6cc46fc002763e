//go:build cgo

package service

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// ends are how a connection with a daemon may end.
var ends = map[string]func(*machines){
	"scanned": func(m *machines) {
		conn := m.plain()
		must(m.T, conn.Close())
	},
	"not TLS": func(m *machines) {
		conn := m.plain()
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		must(m.T, err)
		_, _ = io.Copy(io.Discard, conn) // until the daemon closes it
		must(m.T, conn.Close())
	},
	"killed before the handshake": func(m *machines) {
		conn := m.plain()
		_, err := io.WriteString(conn, "\x16\x03\x01\x02\x00\x01")
		must(m.T, err)
		must(m.T, conn.(*net.TCPConn).SetLinger(0))
		must(m.T, conn.Close())
	},
	"a key that is not trusted": func(m *machines) {
		_, err := DialNetwork(m.Context(), NetworkMeeting{Address: m.network.Address(), Wait: time.Minute},
			ClientConfig{Key: newKey(m.T), Verify: m.verify, Log: zerolog.Nop()})
		mustBe(m.T, err, secure.ErrRefused)
	},
	"closed after copies": func(m *machines) {
		c := m.dial()
		m.mustCopyBothWays(c)
		must(m.T, c.Close())
	},
	"killed after copies": func(m *machines) {
		c := m.dial()
		m.mustCopyBothWays(c)
		m.network.Cut()
		_ = c.Close()
	},
	"killed in a push": func(m *machines) { m.killDuring((*Client).Push, m.here) },
	"killed in a pull": func(m *machines) { m.killDuring((*Client).Pull, m.box) },
}

func (m *machines) plain() net.Conn {
	m.Helper()
	conn, err := net.Dial("tcp", m.daemon.Address())
	must(m.T, err)
	return conn
}

func (m *machines) mustCopyBothWays(c *Client) {
	m.Helper()
	write(m.T, filepath.Join(m.here, "file"), 2<<20)
	_, err := c.Push(m.Context(), m.request("file"))
	must(m.T, err)
	must(m.T, os.Remove(filepath.Join(m.here, "file")))
	_, err = c.Pull(m.Context(), m.request("file"))
	must(m.T, err)
	must(m.T, os.Remove(filepath.Join(m.box, "file")))
}

// killDuring resets all connections during a copy of a file in a directory.
func (m *machines) killDuring(copyIt func(*Client, context.Context, CopyRequest) (job.Summary, error), from string) {
	m.Helper()
	write(m.T, filepath.Join(from, "killed"), 16<<20)
	c := m.dial()
	m.network.At(m.network.Passed()+2<<20, m.network.Cut)
	if _, err := copyIt(c, m.Context(), m.request("killed")); err == nil {
		m.Error("the copy was not killed")
	}
	_ = c.Close()
	for _, dir := range []string{m.box, m.here} {
		must(m.T, os.RemoveAll(filepath.Join(dir, "killed")))
	}
}

// However connections end, neither side keeps a descriptor, a mapping or a goroutine.
func TestNetworkLeavesNothing(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			m := openMachines(t, nil)
			before, goroutines, open := docatest.TakeInventory(t), runtime.NumGoroutine(), m.descriptors()
			for range 8 {
				end(m)
			}
			must(t, m.dial().Close()) // by now the daemon has accepted those before
			waitUntil(t, func() bool {
				m.network.Cut() // the proxy's own
				return runtime.NumGoroutine() <= goroutines && m.descriptors() <= open
			})
			if got := m.server.Status(); len(got.Connections)+got.Pending != 0 {
				t.Errorf("the daemon has connections: %+v", got)
			}
			before.MustBeUnchanged(t)
		})
	}
}

// descriptors returns how many this process has.
func (m *machines) descriptors() int {
	m.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(m.T, err)
	return len(open)
}
