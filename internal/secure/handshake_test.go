package secure

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/identity"
)

var errUntrusted = errors.New("an untrusted key")

// only accepts one key.
func only(key identity.Public) func(identity.Public) error {
	return func(peer identity.Public) error {
		if peer != key {
			return errUntrusted
		}
		return nil
	}
}

func TestBothSidesKnowThePeer(t *testing.T) {
	s := newSides(t)
	one, other := comch.Pipe(MinMessage)
	server, client := mustMeet(t, s, one, other)
	if server.Peer() != s.client.Key.Public() || client.Peer() != s.server.Key.Public() {
		t.Error("a side does not have the key of the other one")
	}
	closeBoth(t, server, client)
}

func TestSideWithoutAKeyHasANewOne(t *testing.T) {
	anybody := sides{server: Config{Verify: AnyKey}, client: Config{Verify: AnyKey}}
	var seen []identity.Public
	for range 2 {
		one, other := comch.Pipe(4080)
		server, client := mustMeet(t, anybody, one, other)
		seen = append(seen, server.Peer(), client.Peer())
		closeBoth(t, server, client)
	}
	for i, key := range seen {
		for _, earlier := range seen[:i] {
			if key == earlier {
				t.Errorf("the key %s is there twice", key)
			}
		}
	}
}

func closeBoth(t *testing.T, conns ...comch.Conn) {
	t.Helper()
	for _, conn := range conns {
		comchtest.MustClose(t, conn)
	}
}

// A side that refuses the key of the other one knows which it was, and the other one knows that it was refused. Neither
// gets a connection.
func TestUntrustedKeyIsRefused(t *testing.T) {
	for name, refusing := range map[string]func(*sides) *Config{
		"by the server": func(s *sides) *Config { return &s.server },
		"by the client": func(s *sides) *Config { return &s.client },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSides(t)
			untrustedKey := newKey(t).Public()
			refusing(&s).Verify = only(untrustedKey)
			one, other := comch.Pipe(4080)
			accepting := start(t.Context(), one, s.server, Server)
			_, clientErr := Client(t.Context(), other, s.client)
			serverErr := (<-accepting).err
			refused, mine, peer := serverErr, clientErr, s.client.Key
			if name == "by the client" {
				refused, mine, peer = clientErr, serverErr, s.server.Key
			}
			var untrusted *UntrustedError
			if !errors.As(refused, &untrusted) || untrusted.Key != peer.Public() || !errors.Is(refused, errUntrusted) {
				t.Errorf("the refusing side: %v", refused)
			}
			if !errors.Is(mine, ErrRefused) {
				t.Errorf("the refused side: %v", mine)
			}
			<-one.Done()
		})
	}
}

// hostileClient talks to a server over its connection until it has enough.
type hostileClient func(ctx context.Context, t *testing.T, conn comch.Conn)

// Each of these clients has no key that the server trusts, or does not do what a client does. A server ends each within
// its timeout, and takes no more messages than it may.
func TestHostileClients(t *testing.T) {
	s := newSides(t)
	for name, c := range map[string]struct {
		client hostileClient
		want   error
	}{
		"silent":                     {silent, ErrTimeout},
		"a byte every two seconds":   {slow, ErrTimeout},
		"leaves at once":             {leaves, comch.ErrPeerLost},
		"leaves after its hello":     {leavesAfterHello(s), comch.ErrPeerLost},
		"garbage":                    {sends(bytes.Repeat([]byte("garbage "), 100)), ErrHandshake},
		"zeros":                      {sends(make([]byte, 4080)), ErrHandshake},
		"flood of messages":          {floods(endlessHello()[:10], make([]byte, 10)), errTooMuch},
		"flood of bytes":             {floods(endlessHello(), endlessHello()), errTooMuch},
		"HTTP":                       {sends([]byte("GET / HTTP/1.1\r\n\r\n")), ErrHandshake},
		"TLS 1.2":                    {tlsClient(s, offersTLS12), ErrHandshake},
		"TLS 1.0 to 1.2":             {tlsClient(s, offersOldTLS), ErrHandshake},
		"no key":                     {tlsClient(s, func(c *tls.Config) { c.Certificates = nil }), ErrHandshake},
		"untrusted key":              {tlsClient(s, hasKeyOf(newKey(t))), errUntrusted},
		"certificate without key":    {tlsClient(s, hasCertificateOnly(s, newKey(t))), ErrHandshake},
		"another type of key":        {tlsClient(s, hasECDSA(t)), ErrHandshake},
		"two certificates":           {tlsClient(s, hasTwoCertificates), ErrHandshake},
		"no protocol":                {tlsClient(s, speaks()), ErrHandshake},
		"another protocol":           {tlsClient(s, speaks("h2")), ErrHandshake},
		"its own messages back":      {echoes, ErrHandshake},
		"data before the acceptance": {sendsEarly(s), ErrHandshake},
		"a recorded handshake":       {replays(record(t, s)), ErrHandshake},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, other := comch.Pipe(16 << 10)
				counted := &counting{PipeEnd: one}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					c.client(ctx, t, other)
				}()
				started := time.Now()
				secured, err := Server(t.Context(), counted, s.server)
				if !errors.Is(err, c.want) || secured != nil {
					t.Errorf("got %v, %v; want %v", secured, err, c.want)
				}
				if took := time.Since(started); took > DefaultTimeout {
					t.Errorf("it took %s of the bubble's time", took)
				}
				if counted.messages > MaxHandshakeMessages+1 || counted.bytes > MaxHandshakeBytes+16<<10 {
					t.Errorf("the server took %d messages with %d bytes", counted.messages, counted.bytes)
				}
				<-one.Done()
				cancel()
				<-done
				closeBoth(t, other)
			})
		})
	}
}

// counting counts what is received.
type counting struct {
	*comch.PipeEnd
	messages, bytes int
}

func (c *counting) Recv(ctx context.Context) ([]byte, error) {
	message, err := c.PipeEnd.Recv(ctx)
	if err == nil {
		c.messages++
		c.bytes += len(message)
	}
	return message, err
}

func leaves(_ context.Context, t *testing.T, conn comch.Conn) { closeBoth(t, conn) }

func silent(_ context.Context, _ *testing.T, conn comch.Conn) { <-conn.Done() }

func slow(ctx context.Context, _ *testing.T, conn comch.Conn) {
	for _, b := range []byte{22, 3, 1, 0x10, 0, 1, 0, 0x0f, 0xfc} {
		if conn.Send(ctx, []byte{b}) != nil {
			return
		}
		time.Sleep(2 * time.Second)
	}
}

func sends(message []byte) hostileClient {
	return func(ctx context.Context, _ *testing.T, conn comch.Conn) { _ = conn.Send(ctx, message) }
}

func floods(first, more []byte) hostileClient {
	return func(ctx context.Context, _ *testing.T, conn comch.Conn) {
		for err := conn.Send(ctx, first); err == nil; {
			err = conn.Send(ctx, more)
		}
	}
}

// endlessHello returns a record with the beginning of a hello of 64 KiB, of which package tls waits for the rest.
func endlessHello() []byte {
	const length = 16<<10 - recordHeader
	return append([]byte{22, 3, 1, byte(length >> 8), byte(length & 0xff), 1, 0, 0xff, 0xff}, make([]byte, length-4)...)
}

func echoes(ctx context.Context, _ *testing.T, conn comch.Conn) {
	c := Config{Verify: AnyKey}
	one, other := comch.Pipe(conn.MaxMessage())
	start(ctx, one, c, Client) // it is closed with the bubble's context
	hello, err := other.Recv(ctx)
	for err == nil {
		if err = conn.Send(ctx, hello); err == nil {
			hello, err = conn.Recv(ctx)
		}
	}
	_ = other.Close()
}

func leavesAfterHello(s sides) hostileClient {
	return func(ctx context.Context, t *testing.T, conn comch.Conn) {
		v := verifier{accept: AnyKey}
		config, err := v.config(s.client.Key)
		if err != nil {
			t.Error(err)
			return
		}
		_ = tls.Client(newStream(closesOnRecv(ctx, conn), conn), config).Handshake()
	}
}

// closesOnRecv returns a context that has ended, and closes the connection: a message is sent, and none is received.
func closesOnRecv(ctx context.Context, conn comch.Conn) context.Context {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	context.AfterFunc(ctx, func() {
		cancel()
		_ = conn.Close()
	})
	return ctx
}

// tlsClient is a client with another configuration than Client has.
func tlsClient(s sides, change func(*tls.Config)) hostileClient {
	return func(ctx context.Context, t *testing.T, conn comch.Conn) {
		v := verifier{accept: AnyKey}
		config, err := v.config(s.client.Key)
		if err != nil {
			t.Error(err)
			return
		}
		config.VerifyConnection = nil // it does not mind the server
		change(config)
		raw := newStream(ctx, conn)
		_, _ = clientHandshake(raw, config)
		raw.sendAlert()
	}
}

func offersTLS12(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }
func offersOldTLS(c *tls.Config) {
	c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS12
}

func speaks(protocols ...string) func(*tls.Config) {
	return func(c *tls.Config) { c.NextProtos = protocols }
}

func hasKeyOf(key *identity.Key) func(*tls.Config) {
	return func(c *tls.Config) {
		certificate, _ := key.TLS()
		c.Certificates = []tls.Certificate{certificate}
	}
}

func hasCertificateOnly(s sides, other *identity.Key) func(*tls.Config) {
	return func(c *tls.Config) {
		trusted, _ := s.client.Key.TLS()
		own, _ := other.TLS()
		trusted.PrivateKey = own.PrivateKey
		c.Certificates = []tls.Certificate{trusted}
	}
}

func hasECDSA(t *testing.T) func(*tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *tls.Config) {
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	}
}

func hasTwoCertificates(c *tls.Config) {
	c.Certificates[0].Certificate = append(c.Certificates[0].Certificate, c.Certificates[0].Certificate[0])
}

// sendsEarly sends data in the message that completes its handshake.
func sendsEarly(s sides) hostileClient {
	return func(ctx context.Context, t *testing.T, conn comch.Conn) {
		v := verifier{accept: AnyKey}
		config, err := v.config(s.client.Key)
		if err != nil {
			t.Error(err)
			return
		}
		raw := newStream(ctx, conn)
		client := tls.Client(raw, config)
		if err := client.Handshake(); err != nil {
			t.Error(err)
		}
		_, _ = client.Write([]byte("early"))
		_ = raw.flush(ctx)
	}
}

// recorder keeps a copy of what it sends.
type recorder struct {
	*comch.PipeEnd
	mu   sync.Mutex
	sent [][]byte
}

func (r *recorder) Send(ctx context.Context, message []byte) error {
	r.mu.Lock()
	r.sent = append(r.sent, bytes.Clone(message))
	r.mu.Unlock()
	return r.PipeEnd.Send(ctx, message)
}

// record returns the messages of a client that a server has accepted.
func record(t *testing.T, s sides) [][]byte {
	t.Helper()
	one, other := comch.Pipe(4080)
	recording := &recorder{PipeEnd: other}
	server, client := mustMeet(t, s, one, recording)
	sent := recording.sent
	closeBoth(t, server, client)
	return sent
}

func replays(messages [][]byte) hostileClient {
	return func(ctx context.Context, _ *testing.T, conn comch.Conn) {
		for _, message := range messages {
			_ = conn.Send(ctx, message)
		}
	}
}

// hostileServer completes the handshake of package tls, and then does something else than to accept.
type hostileServer func(ctx context.Context, s *stream, c *tls.Conn)

func TestHostileServers(t *testing.T) {
	s := newSides(t)
	for name, c := range map[string]struct {
		change func(*tls.Config)
		server hostileServer
		want   error
	}{
		"says nothing":         {unchanged, func(context.Context, *stream, *tls.Conn) {}, ErrTimeout},
		"leaves":               {unchanged, hangsUp, comch.ErrPeerLost},
		"accepts otherwise":    {unchanged, writes([]byte{2}), ErrHandshake},
		"accepts at length":    {unchanged, writes([]byte{accepted, accepted}), ErrHandshake},
		"accepts twice":        {unchanged, writes([]byte{accepted}, []byte{accepted}), ErrHandshake},
		"TLS 1.2":              {offersTLS12, writes([]byte{accepted}), ErrHandshake},
		"another type of key":  {hasECDSA(t), writes([]byte{accepted}), ErrHandshake},
		"certificate only":     {hasServerCertificateOnly(s, newKey(t)), writes([]byte{accepted}), ErrHandshake},
		"no protocol":          {speaks(), writes([]byte{accepted}), ErrHandshake},
		"an untrusted key":     {hasKeyOf(newKey(t)), writes([]byte{accepted}), errUntrusted},
		"the client's own key": {hasKeyOf(s.client.Key), writes([]byte{accepted}), errUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, other := comch.Pipe(4080)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					serveHostile(ctx, t, one, s.server.Key, c.change, c.server)
				}()
				secured, err := Client(t.Context(), other, s.client)
				if !errors.Is(err, c.want) || secured != nil {
					t.Errorf("got %v, %v; want %v", secured, err, c.want)
				}
				<-other.Done()
				cancel()
				<-done
				closeBoth(t, one)
			})
		})
	}
}

func serveHostile(
	ctx context.Context, t *testing.T, conn comch.Conn, key *identity.Key, change func(*tls.Config),
	behave hostileServer,
) {
	v := verifier{accept: AnyKey}
	config, err := v.config(key)
	if err != nil {
		t.Error(err)
		return
	}
	config.VerifyConnection = nil // it does not mind the client
	change(config)
	s := newStream(ctx, conn)
	server := tls.Server(s, config)
	if server.Handshake() == nil {
		behave(ctx, s, server)
	}
	_ = s.flush(ctx)
}

func hangsUp(_ context.Context, s *stream, _ *tls.Conn) { _ = s.raw.Close() }

func unchanged(*tls.Config) {}

func writes(records ...[]byte) hostileServer {
	return func(_ context.Context, _ *stream, c *tls.Conn) {
		for _, record := range records {
			_, _ = c.Write(record)
		}
	}
}

func hasServerCertificateOnly(s sides, other *identity.Key) func(*tls.Config) {
	return hasCertificateOnly(sides{client: s.server}, other)
}

// Every check of what the peer has shown refuses by itself.
func TestPeerKeyChecks(t *testing.T) {
	good := func() tls.ConnectionState {
		key := newKey(t).Public()
		return tls.ConnectionState{
			Version: tls.VersionTLS13, NegotiatedProtocol: protocol,
			PeerCertificates: []*x509.Certificate{{PublicKey: ed25519.PublicKey(key[:])}},
		}
	}
	if _, err := peerKey(good(), protocol); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*tls.ConnectionState){
		"version":        func(s *tls.ConnectionState) { s.Version = tls.VersionTLS12 },
		"resumed":        func(s *tls.ConnectionState) { s.DidResume = true },
		"protocol":       func(s *tls.ConnectionState) { s.NegotiatedProtocol = "" },
		"no certificate": func(s *tls.ConnectionState) { s.PeerCertificates = nil },
		"two certificates": func(s *tls.ConnectionState) {
			s.PeerCertificates = append(s.PeerCertificates, s.PeerCertificates[0])
		},
		"type of key": shows(&ecdsa.PublicKey{}),
		"short key":   shows(ed25519.PublicKey("short")),
		"weak key":    shows(make(ed25519.PublicKey, 32)),
	} {
		t.Run(name, func(t *testing.T) {
			state := good()
			spoil(&state)
			v := verifier{accept: AnyKey}
			if err := v.verify(state); err == nil || v.verified || !errors.Is(v.failed, ErrHandshake) {
				t.Errorf("verified %t with error %v", v.verified, err)
			}
		})
	}
}

func shows(key any) func(*tls.ConnectionState) {
	return func(s *tls.ConnectionState) { s.PeerCertificates[0].PublicKey = key }
}

// A handshake in which nobody has checked the key is not one, whatever package tls says about it.
func TestUncheckedKeyIsRefused(t *testing.T) {
	s := newSides(t)
	one, other := comch.Pipe(4080)
	accepting := start(t.Context(), one, s.server, Server)
	secured, err := authenticate(t.Context(), other, s.client, func(raw *stream, c *tls.Config) (*tls.Conn, error) {
		c.VerifyConnection = nil
		return clientHandshake(raw, c)
	})
	if !errors.Is(err, ErrHandshake) || secured != nil {
		t.Errorf("got %v, %v", secured, err)
	}
	if r := <-accepting; r.err == nil {
		closeBoth(t, r.conn)
	}
}

func TestConfigurationIsRefused(t *testing.T) {
	one, other := comch.Pipe(MinMessage)
	if _, err := Server(t.Context(), one, Config{}); err == nil {
		t.Error("a side without a check of keys starts")
	}
	<-other.Done()
	small, _ := comch.Pipe(MinMessage - 1)
	_, err := Client(t.Context(), small, Config{Verify: AnyKey})
	comchtest.MustBe(t, err, doca.CodeNotSupported)
}

func TestContextEndsTheHandshake(t *testing.T) {
	one, other := comch.Pipe(4080)
	ctx, cancel := context.WithCancelCause(t.Context())
	results := start(ctx, one, Config{Verify: AnyKey}, Server)
	cancel(comchtest.ErrEnough)
	comchtest.MustBe(t, (<-results).err, comchtest.ErrEnough)
	<-other.Done()
}
