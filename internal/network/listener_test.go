package network

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// refusals collects what a listener refuses.
type refusals chan error

func (r refusals) settings(s *Settings) { s.Refused = func(_ net.Addr, reason error) { r <- reason } }

// mustRefuse waits for a refusal because of that.
func (r refusals) mustRefuse(t *testing.T, because error, text string) {
	t.Helper()
	select {
	case got := <-r:
		if because != nil && !errors.Is(got, because) || !strings.Contains(got.Error(), text) {
			t.Errorf("refused because of: %v; want %v with %q", got, because, text)
		}
	case <-patient(t).Done():
		t.Error("the connection was not refused")
	}
}

// Each of these peers is no client. The listener ends its connection without the help of the service.
func TestListenerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		peer    func(t *testing.T, m *machines, conn net.Conn)
		because error
		text    string
	}{
		"a port scan":         {func(_ *testing.T, _ *machines, conn net.Conn) { _ = conn.Close() }, io.EOF, ""},
		"a reset":             {resets, syscall.ECONNRESET, ""},
		"HTTP":                {writes("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), errNoHello, ""},
		"zeros":               {writes(strings.Repeat("\x00", 4096)), errNoHello, ""},
		"half a record":       {closesAfter("\x16\x03\x01\x02\x00\x01"), io.EOF, ""},
		"an endless hello":    {writes(endless()), errNoHello, ""},
		"data without a key":  {dataConn(func(c *tls.Config) { c.Certificates = nil }), secure.ErrHandshake, ""},
		"data of another key": {dataConn(func(*tls.Config) {}), secure.ErrHandshake, errNotExpected.Error()},
		"data over TLS 1.2":   {dataConn(offersTLS12), secure.ErrHandshake, ""},
		"a long handshake":    {dataConn(hasLongChain), secure.ErrHandshake, "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := make(refusals, 1)
			m := newMachines(t, refused.settings)
			conn := m.plain(t)
			c.peer(t, m, conn)
			refused.mustRefuse(t, c.because, c.text)
			mustBeClosed(t, conn)
			m.mustBeEmpty(t)
		})
	}
}

func resets(t *testing.T, _ *machines, conn net.Conn) {
	must(t, conn.(*net.TCPConn).SetLinger(0))
	_ = conn.Close()
}

func writes(text string) func(*testing.T, *machines, net.Conn) {
	return func(_ *testing.T, _ *machines, conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

func closesAfter(text string) func(*testing.T, *machines, net.Conn) {
	return func(t *testing.T, m *machines, conn net.Conn) {
		writes(text)(t, m, conn)
		_ = conn.Close()
	}
}

// endless begins a hello of 16 MiB, in many records.
func endless() string {
	const length = 16 << 10
	record := "\x16\x03\x01\x40\x00"
	first := record + "\x01\xff\xff\xff" + strings.Repeat("a", length-4)
	return first + strings.Repeat(record+strings.Repeat("a", length), 8)
}

func offersTLS12(c *tls.Config) { c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12 }

// hasLongChain adds a certificate that package tls would receive.
func hasLongChain(c *tls.Config) {
	own := c.Certificates[0]
	own.Certificate = append(slices.Clone(own.Certificate), make([]byte, 100<<10))
	c.Certificates = []tls.Certificate{own}
}

// dataConn begins a data connection with a new key.
func dataConn(alter func(*tls.Config)) func(*testing.T, *machines, net.Conn) {
	return func(t *testing.T, m *machines, conn net.Conn) {
		config, err := secure.DataServer(newKey(t), secure.AnyKey) // a client's has the same content
		must(t, err)
		alter(config)
		_ = tls.Client(conn, config).HandshakeContext(patient(t))
	}
}

// mustBeClosed waits for the end of a connection.
func mustBeClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is open")
	}
}

// mustBeEmpty waits until no connection counts any more.
func (m *machines) mustBeEmpty(t *testing.T) {
	t.Helper()
	ctx := patient(t)
	for ctx.Err() == nil {
		m.admission.mu.Lock()
		all, sources := m.admission.all, len(m.admission.sources)
		m.admission.mu.Unlock()
		if all == 0 && sources == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("connections that have ended still count")
}

// A client of TLS 1.2, and one without a key, are refused by package secure, which tells them why.
func TestControlRefuses(t *testing.T) {
	m := newMachines(t, nil)
	for name, alter := range map[string]func(*tls.Config){
		"TLS 1.2":     offersTLS12,
		"no key":      func(c *tls.Config) { c.Certificates = nil },
		"no protocol": func(c *tls.Config) { c.NextProtos = nil },
	} {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 1)
			go func() {
				c, err := m.Accept(patient(t))
				if err == nil {
					_, err = secure.Server(patient(t), c, secure.Config{Key: m.server, Verify: secure.AnyKey})
				}
				result <- err
			}()
			config, err := secure.DataServer(m.client, secure.AnyKey)
			must(t, err)
			config.NextProtos, config.VerifyConnection = []string{"dma-copy/1"}, nil
			alter(config)
			client := tls.Client(m.plain(t), config)
			err = client.HandshakeContext(patient(t))
			if err == nil {
				_, err = client.Read(make([]byte, 1))
			}
			var alert *net.OpError
			if !errors.As(err, &alert) || alert.Op != "remote error" {
				t.Errorf("the client has %v, want an alert", err)
			}
			if err := <-result; !errors.Is(err, secure.ErrHandshake) {
				t.Errorf("the server has %v", err)
			}
			m.mustBeEmpty(t)
		})
	}
}

// What follows the hello of a control connection is bounded, too, until the peer is authenticated.
func TestFloodBeforeAuthentication(t *testing.T) {
	m := newMachines(t, nil)
	result := make(chan error, 1)
	var served atomic.Pointer[Control]
	go func() {
		c, err := m.Accept(patient(t))
		if err == nil {
			served.Store(c)
			<-c.in.readable // there is something to read, and nobody reads it for a while
			_, err = secure.Server(patient(t), c, secure.Config{Key: m.server, Verify: secure.AnyKey})
		}
		result <- err
	}()
	conn := m.plain(t)
	hello := recordedHello(t)
	_, err := conn.Write(hello)
	must(t, err)
	record := append([]byte{23, 3, 3, 0x40, 0x11}, make([]byte, 0x4011)...)
	for range 200 { // 3 MiB
		_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Write(record); err != nil {
			break
		}
	}
	if err := <-result; !errors.Is(err, secure.ErrHandshake) {
		t.Errorf("got %v", err)
	}
	c := served.Load()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.in.maxQueued != firstQueued || c.in.maxBytes != firstBytes {
		t.Errorf("%d messages and %d bytes may wait", c.in.maxQueued, c.in.maxBytes)
	}
}

// recordedHello returns the first record of a client.
func recordedHello(t testing.TB) []byte {
	t.Helper()
	one, other := comch.Pipe(4080)
	go func() { _, _ = secure.Client(context.Background(), one, secure.Config{Verify: secure.AnyKey}) }()
	hello, err := other.Recv(patient(t))
	must(t, err)
	must(t, other.Close())
	return hello
}

// A peer that takes longer than it may for its hello loses the connection.
func TestSlowHello(t *testing.T) {
	for name, peer := range map[string]func(*testing.T, *machines, net.Conn){
		"silent": writes(""), "half a hello": writes("\x16\x03\x01\x02\x00\x01"),
	} {
		t.Run(name, func(t *testing.T) {
			refused := make(refusals, 1)
			m := newMachines(t, func(s *Settings) {
				refused.settings(s)
				s.hello = 50 * time.Millisecond
			})
			conn := m.plain(t)
			peer(t, m, conn)
			refused.mustRefuse(t, secure.ErrTimeout, "")
			mustBeClosed(t, conn)
		})
	}
}

// One address has a limited number of connections that have not authenticated, and those count no more when they end.
func TestLimitPerAddress(t *testing.T) {
	refused := make(refusals, maxUnauthenticatedPerAddress+1)
	m := newMachines(t, refused.settings)
	var conns []net.Conn
	for range maxUnauthenticatedPerAddress {
		conns = append(conns, m.plain(t))
	}
	waitFor(t, func() bool { return m.counted() == maxUnauthenticatedPerAddress })
	mustBeClosed(t, m.plain(t))
	refused.mustRefuse(t, nil, "have not authenticated yet")
	for _, conn := range conns {
		_ = conn.Close()
	}
	m.mustBeEmpty(t)
	m.meet(t).close(t)
}

func (m *machines) counted() int {
	m.admission.mu.Lock()
	defer m.admission.mu.Unlock()
	return m.admission.all
}

// waitFor waits until something is so.
func waitFor(t testing.TB, is func() bool) {
	t.Helper()
	for ctx := patient(t); !is(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it does not happen")
		}
	}
}

// Addresses of one IPv6 network count together, and an IPv4 address is the same in either notation.
func TestSources(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	for _, same := range [][2]string{
		{"10.0.0.1", "::ffff:10.0.0.1"}, {"2001:db8::1", "2001:db8::2:3"}, {"fe80::1", "fe80::2"},
	} {
		if sourceOf(at(same[0])) != sourceOf(at(same[1])) {
			t.Errorf("%s and %s are different", same[0], same[1])
		}
	}
	for _, different := range [][2]string{
		{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8:0:1::1"}, {"10.0.0.1", "::10.0.0.1"},
	} {
		if sourceOf(at(different[0])) == sourceOf(at(different[1])) {
			t.Errorf("%s and %s are the same", different[0], different[1])
		}
	}
}

// The limit of all addresses holds as well.
func TestLimitOfAll(t *testing.T) {
	a := newAdmission()
	var leaves []func()
	for i := range maxUnauthenticated {
		_, leave, err := a.enter(&net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i))})
		must(t, err)
		leaves = append(leaves, leave)
	}
	if _, _, err := a.enter(&net.TCPAddr{IP: net.IPv4(10, 1, 0, 0)}); err == nil {
		t.Error("one more is admitted")
	}
	for _, leave := range leaves {
		leave()
		leave() // once is enough
	}
	if a.all != 0 || len(a.sources) != 0 {
		t.Errorf("%d connections of %d addresses are left", a.all, len(a.sources))
	}
}

// Close unblocks Accept, and ends connections that nobody has accepted.
func TestCloseOfListener(t *testing.T) {
	m := newMachines(t, nil)
	control, err := Dial(patient(t), m.address(), time.Minute, Settings{})
	must(t, err)
	authenticating := make(chan error, 1)
	go func() {
		_, err := secure.Client(patient(t), control, secure.Config{Verify: secure.AnyKey})
		authenticating <- err
	}()
	silent := m.plain(t)
	waitFor(t, func() bool { return m.counted() == 2 })
	must(t, m.Close())
	if _, err := m.Accept(patient(t)); !errors.Is(err, comch.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if err := <-authenticating; !errors.Is(err, comch.ErrPeerLost) {
		t.Errorf("the client has %v", err)
	}
	mustBeClosed(t, silent)
	m.mustBeEmpty(t)
	waiting := newMachines(t, nil)
	accepted := make(chan error, 1)
	go func() {
		_, err := waiting.Accept(context.Background())
		accepted <- err
	}()
	must(t, waiting.Close())
	if err := <-accepted; !errors.Is(err, comch.ErrClosed) {
		t.Errorf("Accept during Close: %v", err)
	}
}

func TestAcceptEndsWithItsContext(t *testing.T) {
	m := newMachines(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := m.Accept(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestListenNeedsAKey(t *testing.T) {
	if _, err := Listen(t.Context(), "127.0.0.1:0", Settings{}); err == nil {
		t.Error("it listens without a key")
	}
	if _, err := Listen(t.Context(), "127.0.0.1:no", Settings{Key: newKey(t)}); err == nil {
		t.Error("it listens nowhere")
	}
	m := newMachines(t, nil)
	if _, err := Listen(t.Context(), m.address(), Settings{Key: newKey(t)}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
}

// A data connection of a trusted key is refused unless it names the control connection of that key.
func TestDataNeedsTheControlConnection(t *testing.T) {
	refused := make(refusals, 1)
	m := newMachines(t, refused.settings)
	both := m.meet(t)
	defer both.close(t)
	both.serverControl.Memory(both.server, m.Listener.settings)
	other := newMachinesMeeting(t, m, newKey(t))
	defer other.close(t)
	other.serverControl.Memory(other.server, m.Listener.settings)
	own, err := both.client.Export(secretPurpose, 32)
	must(t, err)
	theirs, err := other.client.Export(secretPurpose, 32)
	must(t, err)
	for name, c := range map[string]struct {
		secret []byte
		client *secure.Conn
		taken  bool
	}{
		"its own":             {own, both.client, true},
		"that of another":     {theirs, both.client, false},
		"another key's of it": {own, other.client, false},
		"none":                {make([]byte, 32), both.client, false},
		"of another purpose":  {mustExport(t, both.client, "something else"), both.client, false},
		"of the other, by it": {theirs, other.client, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := dataConnections{control: both.clientControl, config: c.client.DataClient(), named: secret(c.secret)}
			l, err := d.lane(patient(t), laneID{newWindow(), 0})
			if c.taken {
				must(t, err)
				must(t, l.Close())
				return
			}
			if !errors.Is(err, comch.ErrPeerLost) {
				t.Errorf("got %v", err)
			}
			refused.mustRefuse(t, errNotExpected, "")
		})
	}
}

// A data connection for which there is no place, or whose lane has one, is closed instead of being answered.
func TestDataConnectionsAreReservedBeforeTheAnswer(t *testing.T) {
	refused := make(refusals, 1)
	m := newMachines(t, refused.settings)
	both := m.meet(t)
	defer both.close(t)
	both.serverControl.Memory(both.server, m.Listener.settings)
	session := both.serverControl.session.Load()
	d := dataConnections{
		control: both.clientControl, config: both.client.DataClient(),
		named: secret(mustExport(t, both.client, secretPurpose)),
	}
	mustRefuse := func(id laneID) {
		t.Helper()
		if _, err := d.lane(patient(t), id); !errors.Is(err, errNotTaken) {
			t.Errorf("got %v", err)
		}
		refused.mustRefuse(t, errNotExpected, "")
	}
	window := newWindow()
	var slots []*slot
	for lane := range uint8(wire.MaxLanes) {
		at, err := session.reserve(laneID{window, lane})
		must(t, err)
		slots = append(slots, at)
	}
	mustRefuse(laneID{window, 0})
	mustRefuse(laneID{window + 1, 0})
	session.end(laneID{window, 0}, slots[0])
	if _, open := <-slots[0].arrived; open {
		t.Error("a slot without an answer has a data connection")
	}
	l, err := d.lane(patient(t), laneID{window + 1, 0})
	must(t, err)
	must(t, l.Close())
}

func mustExport(t *testing.T, c *secure.Conn, purpose string) []byte {
	t.Helper()
	exported, err := c.Export(purpose, 32)
	must(t, err)
	return exported
}

// newMachinesMeeting meets the listener of m with another key.
func newMachinesMeeting(t *testing.T, m *machines, key *identity.Key) meeting {
	t.Helper()
	return (&machines{Listener: m.Listener, server: m.server, client: key}).meet(t)
}

// Some data connections of an address may make their handshakes at a time: clients that are slow with theirs do not
// keep another one from its own, as long as there are fewer of them.
func TestDataHandshakesAtOnce(t *testing.T) {
	m := newMachines(t, func(s *Settings) { s.Refused = func(net.Addr, error) {} })
	both := m.meet(t)
	defer both.close(t)
	slow := stalling{begun: make(chan struct{}), end: make(chan struct{})}
	t.Cleanup(func() { close(slow.end) })
	for range maxDataHandshakes - 1 {
		slow.Conn = m.plain(t)
		go dataConn(func(*tls.Config) {})(t, m, slow)
		select {
		case <-slow.begun: // which the server does only when the handshake has its turn
		case <-patient(t).Done():
			t.Fatal("the server does not answer")
		}
	}
	w := both.open(t, wire.PathTLS, true, 1, 1)
	moveMany(t, w, 1, 1)
	w.close(t)
}

// stalling is a connection of a client that receives the first byte of the server, and stops.
type stalling struct {
	net.Conn
	begun, end chan struct{}
}

// Read implements net.Conn.
func (s stalling) Read([]byte) (int, error) {
	if _, err := io.ReadFull(s.Conn, make([]byte, 1)); err != nil {
		return 0, err
	}
	s.begun <- struct{}{}
	<-s.end
	return 0, io.EOF
}

// The number of handshakes that an address makes at a time is bounded.
func TestLimitOfDataHandshakes(t *testing.T) {
	a := newAdmission()
	s, leave, err := a.enter(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)})
	must(t, err)
	defer leave()
	var ends []func()
	for range maxDataHandshakes {
		end, err := s.handshake(patient(t))
		must(t, err)
		ends = append(ends, end)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errSlow)
	if _, err := s.handshake(ctx); !errors.Is(err, errSlow) {
		t.Errorf("one more handshake: %v", err)
	}
	ends[0]()
	if _, err := s.handshake(patient(t)); err != nil {
		t.Errorf("after the end of another one: %v", err)
	}
}
