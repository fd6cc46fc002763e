// Package networktest gives tests a network between two machines that fails when they want it to.
package networktest

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP proxy before a server. It numbers the connections from 0 on, in the order in which they are made: the
// first one of a client is its control connection.
type Proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	stalled func(n int) bool // connections that pass nothing on; nil: none
	conns   []net.Conn
	made    int
	refused int   // connections to be closed at once
	passed  int64 // bytes
	at      int64 // when so many have passed, event is called
	event   func()
	held    bool // nothing passes while event is called
	closed  bool
}

// NewProxy returns a proxy before the server at an address, until the end of the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.run)
	t.Cleanup(p.close)
	return p
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Made returns how many connections clients have made.
func (p *Proxy) Made() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// Passed returns how many bytes have passed, in both directions together.
func (p *Proxy) Passed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// Refuse closes the next n connections at once, as a server that has too many.
func (p *Proxy) Refuse(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = n
}

// refuses reports whether the next connection is to be closed at once.
func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == 0 {
		return false
	}
	p.refused--
	return true
}

// At calls event, once, when that many bytes have passed, in both directions together, and lets nothing pass meanwhile:
// a copy does not end before, however busy the machine is. event may call the other methods.
func (p *Proxy) At(bytes int64, event func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.event = bytes, event
}

// Stall lets nothing pass on the connections for which which returns true, as a network that is cut or a peer that is
// stopped. Nobody is told. nil lets everything pass again.
func (p *Proxy) Stall(which func(n int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = which
	p.changed.Broadcast()
}

// All is for Stall.
func All(int) bool { return true }

// Cut resets all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) run() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuses() {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		n := p.made
		p.made++
		closed := p.closed
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		if closed {
			p.Cut()
		}
		p.running.Go(func() { p.pass(n, client, server) })
		p.running.Go(func() { p.pass(n, server, client) })
	}
}

// pass passes on what comes from one side, and its end.
func (p *Proxy) pass(n int, from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		read, err := from.Read(buffer)
		if !p.mayPass(n, read) {
			return
		}
		if _, failed := to.Write(buffer[:read]); failed != nil {
			_ = from.Close()
			return
		}
		if err == nil {
			continue
		}
		if half, is := to.(*net.TCPConn); is && !errors.Is(err, net.ErrClosed) {
			_ = half.CloseWrite()
		}
		return
	}
}

// mayPass waits while the connection is stalled. It returns false when the proxy is closed.
func (p *Proxy) mayPass(n, bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.held || p.stalled != nil && p.stalled(n)) && !p.closed {
		p.changed.Wait()
	}
	p.passed += int64(bytes)
	if event := p.event; event != nil && p.passed >= p.at {
		p.event, p.held = nil, true
		p.mu.Unlock()
		event()
		p.mu.Lock()
		p.held = false
		p.changed.Broadcast()
	}
	return !p.closed
}
