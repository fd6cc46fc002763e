package network

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/secure"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *identity.Key {
	t.Helper()
	key, err := identity.Generate()
	must(t, err)
	return key
}

// patient returns a context that ends a test that hangs.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// machines are a listener and the keys of both sides.
type machines struct {
	*Listener
	server, client *identity.Key
	settings       Settings // of the client
}

// newMachines returns a listener on a free port, closed at the end of the test.
func newMachines(t testing.TB, alter func(*Settings)) *machines {
	t.Helper()
	m := &machines{server: newKey(t), client: newKey(t)}
	s := Settings{Key: m.server}
	if alter != nil {
		alter(&s)
		alter(&m.settings)
		m.settings.Refused = nil
	}
	var err error
	m.Listener, err = Listen(context.Background(), "127.0.0.1:0", s)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// address returns where clients find the listener.
func (m *machines) address() string { return m.Address().String() }

// meeting is the two ends of an authenticated control connection.
type meeting struct {
	serverControl, clientControl *Control
	server, client               *secure.Conn
}

// meet connects and authenticates both sides. The test closes them.
func (m *machines) meet(t testing.TB) meeting {
	t.Helper()
	ctx := patient(t)
	type result struct {
		control *Control
		conn    *secure.Conn
		err     error
	}
	accepted := make(chan result, 1)
	go func() {
		c, err := m.Accept(ctx)
		if err != nil {
			accepted <- result{err: err}
			return
		}
		conn, err := secure.Server(ctx, c, secure.Config{Key: m.server, Verify: m.only(m.client)})
		accepted <- result{c, conn, err}
	}()
	control, err := Dial(ctx, m.address(), time.Minute, m.settings)
	must(t, err)
	client, err := secure.Client(ctx, control, secure.Config{Key: m.client, Verify: m.only(m.server)})
	must(t, err)
	r := <-accepted
	must(t, r.err)
	return meeting{r.control, control, r.conn, client}
}

// close closes both ends.
func (m meeting) close(t testing.TB) {
	t.Helper()
	must(t, m.client.Close())
	must(t, m.server.Close())
}

// only accepts one key.
func (*machines) only(key *identity.Key) func(identity.Public) error {
	return func(peer identity.Public) error {
		if peer != key.Public() {
			return errNotExpected
		}
		return nil
	}
}

// plain makes a TCP connection to the listener.
func (m *machines) plain(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", m.address())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
