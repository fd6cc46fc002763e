package secure

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/identity"
)

// Both sides derive the same secret from a connection, and another one for every purpose and every connection.
func TestExport(t *testing.T) {
	s := newSides(t)
	var seen [][]byte
	for range 2 {
		one, other := comch.Pipe(4080)
		server, client := mustMeet(t, s, one, other)
		for _, purpose := range []string{"one", "two"} {
			mine, err := server.Export(purpose, 32)
			must(t, err)
			theirs, err := client.Export(purpose, 32)
			must(t, err)
			if !bytes.Equal(mine, theirs) || len(mine) != 32 {
				t.Errorf("the server derives %x, the client %x", mine, theirs)
			}
			for _, earlier := range seen {
				if bytes.Equal(mine, earlier) {
					t.Errorf("the same secret twice: %x", mine)
				}
			}
			seen = append(seen, mine)
		}
		closeBoth(t, server, client)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dataHandshake makes the handshake of a data connection, and returns how both sides see it.
func dataHandshake(t *testing.T, server, client *tls.Config) (peer identity.Public, serverErr, clientErr error) {
	t.Helper()
	one, other := net.Pipe()
	results := make(chan error, 1)
	accepting, dialing := tls.Server(one, server), tls.Client(other, client)
	go func() {
		err := accepting.HandshakeContext(t.Context())
		if err != nil {
			_ = one.Close()
		} else {
			_, err = accepting.Write([]byte{1})
		}
		results <- err
	}()
	clientErr = dialing.HandshakeContext(t.Context())
	if clientErr == nil {
		_, clientErr = dialing.Read(make([]byte, 1)) // a server's refusal comes after the handshake of a client
	}
	_ = other.Close()
	if serverErr = <-results; serverErr == nil {
		var err error
		peer, err = DataPeer(accepting.ConnectionState())
		must(t, err)
	}
	_ = one.Close()
	return peer, serverErr, clientErr
}

func TestDataConnection(t *testing.T) {
	s := newSides(t)
	one, other := comch.Pipe(4080)
	server, client := mustMeet(t, s, one, other)
	defer closeBoth(t, server, client)
	accepting, err := DataServer(s.server.Key, only(s.client.Key.Public()))
	must(t, err)
	if peer, serverErr, clientErr := dataHandshake(t, accepting, client.DataClient()); serverErr != nil ||
		clientErr != nil || peer != s.client.Key.Public() {
		t.Errorf("server: %v, client: %v, key of the peer %s", serverErr, clientErr, peer)
	}
	for name, alter := range map[string]func(server, client *tls.Config){
		"refused key":       func(_, client *tls.Config) { client.Certificates = certificates(t, newKey(t)) },
		"no key":            func(_, client *tls.Config) { client.Certificates = nil },
		"control protocol":  func(_, client *tls.Config) { client.NextProtos = []string{protocol} },
		"no protocol":       func(_, client *tls.Config) { client.NextProtos = nil },
		"TLS 1.2":           func(_, client *tls.Config) { client.MinVersion, client.MaxVersion = 0, tls.VersionTLS12 },
		"another server":    func(server, _ *tls.Config) { server.Certificates = certificates(t, newKey(t)) },
		"another protocol":  func(server, _ *tls.Config) { server.NextProtos = nil },
		"server of TLS 1.2": func(server, _ *tls.Config) { server.MinVersion, server.MaxVersion = 0, tls.VersionTLS12 },
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := accepting.Clone(), client.DataClient()
			alter(mine, theirs)
			if _, serverErr, clientErr := dataHandshake(t, mine, theirs); serverErr == nil || clientErr == nil {
				t.Errorf("server: %v, client: %v", serverErr, clientErr)
			}
		})
	}
}

func certificates(t *testing.T, key *identity.Key) []tls.Certificate {
	t.Helper()
	own, err := key.TLS()
	must(t, err)
	return []tls.Certificate{own}
}

func TestIsData(t *testing.T) {
	for offered, want := range map[string]bool{dataProtocol: true, protocol: false, "": false, "h2": false} {
		if IsData([]string{offered}) != want {
			t.Errorf("%q is a data connection: %t", offered, !want)
		}
	}
}

// framedPipe is a channel that delivers records.
type framedPipe struct{ *comch.PipeEnd }

func (framedPipe) RecordFramed()  {}
func (framedPipe) Stalled() error { return nil }

// A peer of a channel that delivers records may have more of them in its handshake, and not an unlimited number.
func TestRecordsOfHandshakeAreBounded(t *testing.T) {
	s := newSides(t)
	for name, c := range map[string]struct {
		conn func(*comch.PipeEnd) comch.Conn
		most int
	}{
		"messages": {func(p *comch.PipeEnd) comch.Conn { return p }, MaxHandshakeMessages},
		"records":  {func(p *comch.PipeEnd) comch.Conn { return framedPipe{p} }, MaxHandshakeRecords},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := comch.Pipe(4080)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hello := endlessHello()
			sent := 0
			results := start(ctx, c.conn(one), s.server, Server)
			for ; sent < 100; sent++ {
				if other.Send(ctx, hello[sent:sent+1]) != nil {
					break
				}
			}
			if r := <-results; !errors.Is(r.err, errTooMuch) {
				t.Errorf("got %v", r.err)
			}
			left := 0
			for ; ; left++ {
				if _, received := one.TryRecv(); !received {
					break
				}
			}
			if taken := sent - left; taken > c.most+1 {
				t.Errorf("%d messages were taken, limit %d", taken, c.most)
			}
			closeBoth(t, other)
		})
	}
}
