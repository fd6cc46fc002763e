package secure

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// protocol is the name of what the channel carries (ALPN), so that a key of another program is of no use here.
const protocol = "dma-copy/1"

// accepted is the first record of the server's data: it has accepted the key of the client, which would otherwise take
// its own part of the handshake for the whole.
const accepted = 1

// Server authenticates a connection as the TLS server, which is the daemon's side. The Conn owns conn, which must
// take messages of MinMessage bytes. With an error conn is closed. UntrustedError, ErrRefused, ErrHandshake,
// ErrTimeout, an error of conn, or the cause of ctx.
func Server(ctx context.Context, conn comch.Conn, c Config) (*Conn, error) {
	return authenticate(ctx, conn, c, serverHandshake)
}

// Client is Server for the TLS client, which is the command's side. When it returns without error, the server has
// accepted the key of this side as well.
func Client(ctx context.Context, conn comch.Conn, c Config) (*Conn, error) {
	return authenticate(ctx, conn, c, clientHandshake)
}

func authenticate(
	ctx context.Context, conn comch.Conn, c Config, handshake func(*stream, *tls.Config) (*tls.Conn, error),
) (*Conn, error) {
	secured, err := c.authenticate(ctx, conn, handshake)
	if err != nil {
		if framed, is := conn.(RecordFramed); is && errors.Is(err, ErrTimeout) {
			err = cmp.Or(framed.Stalled(), err)
		}
		_ = conn.Close()
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return secured, nil
}

func (c Config) authenticate(
	ctx context.Context, conn comch.Conn, handshake func(*stream, *tls.Config) (*tls.Conn, error),
) (*Conn, error) {
	if conn.MaxMessage() < MinMessage {
		return nil, fmt.Errorf("a channel with messages of %d bytes: %w", MinMessage, doca.CodeNotSupported)
	}
	if c.Verify == nil {
		return nil, errors.New("no check of the peer's key is configured")
	}
	v := verifier{accept: c.Verify}
	config, err := v.config(c.Key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(c.Timeout, DefaultTimeout), ErrTimeout)
	defer cancel()
	s := newStream(ctx, conn)
	s.log = c.Log
	t, err := handshake(s, config)
	if err == nil && !v.verified {
		err = errors.New("the key of the peer was not checked") // package tls has not called verify
	}
	if err != nil {
		s.sendAlert()
		return nil, cmp.Or(s.failed, v.failed, explainHandshake(err))
	}
	return newConn(conn, s, t, &v), nil
}

func serverHandshake(s *stream, config *tls.Config) (*tls.Conn, error) {
	t := tls.Server(s, config)
	if err := t.Handshake(); err != nil {
		return t, err
	}
	if err := nothingLeft(s, t); err != nil {
		return t, err
	}
	_, _ = t.Write([]byte{accepted})
	s.failed = s.flush(s.ctx)
	return t, s.failed
}

func clientHandshake(s *stream, config *tls.Config) (*tls.Conn, error) {
	t := tls.Client(s, config)
	if err := t.Handshake(); err != nil {
		return t, err
	}
	answer := make([]byte, 2)
	n, err := t.Read(answer)
	switch {
	case err != nil:
		return t, err
	case n != 1 || answer[0] != accepted:
		return t, errors.New("the server's first record is not its acceptance")
	}
	return t, nothingLeft(s, t)
}

// nothingLeft returns an error if package tls has read data of the peer that nobody has taken.
func nothingLeft(s *stream, t *tls.Conn) error {
	ctx := s.ctx
	s.ctx = nil // it is not to wait for more
	defer func() { s.ctx = ctx }()
	if _, err := t.Read(make([]byte, 1)); !errors.Is(err, nothingToRead{}) {
		return errors.New("data before the end of the handshake")
	}
	return nil
}

// alertTime is how long the last record may take to be sent, of a connection that is ending anyway.
const alertTime = 100 * time.Millisecond

// sendAlert sends why the handshake has failed, if package tls has written that.
func (s *stream) sendAlert() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), alertTime)
	defer cancel()
	_ = s.flush(ctx)
}

// explainHandshake returns the error of this package for one of package tls.
func explainHandshake(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Err != nil && remote.Err.Error() == badCertificate {
		return ErrRefused
	}
	return fmt.Errorf("%w: %s", ErrHandshake, quote.Bare(err.Error()))
}

// badCertificate is the text of the alert that package tls sends if VerifyConnection returns an error.
var badCertificate = tls.AlertError(42).Error()

// verifier checks what a peer shows in one handshake.
type verifier struct {
	accept   func(identity.Public) error
	own      tls.Certificate
	peer     identity.Public
	verified bool
	failed   error
}

// config returns the same configuration for both sides, but that each takes of it what it needs.
func (v *verifier) config(key *identity.Key) (_ *tls.Config, err error) {
	if key == nil {
		if key, err = identity.Generate(); err != nil {
			return nil, err
		}
	}
	if v.own, err = key.TLS(); err != nil {
		return nil, err
	}
	return newConfig(v.own, protocol, v.verify), nil
}

// newConfig returns the configuration of either side of a connection that carries a protocol.
func newConfig(own tls.Certificate, protocol string, verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{own},
		NextProtos:             []string{protocol},
		MinVersion:             tls.VersionTLS13,
		MaxVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		// One message is one record, whose size does not depend on the history of the connection.
		DynamicRecordSizingDisabled: true,
		// Nobody signs the certificates. Instead, verify checks the key in them.
		InsecureSkipVerify: true,
		VerifyConnection:   verify,
	}
}

// verify implements tls.Config.VerifyConnection. The signature of the peer is checked by package tls, later.
func (v *verifier) verify(state tls.ConnectionState) error {
	peer, err := peerKey(state, protocol)
	if err != nil {
		v.failed = fmt.Errorf("%w: %w", ErrHandshake, err)
		return v.failed
	}
	if err := v.accept(peer); err != nil {
		v.failed = &UntrustedError{Key: peer, Err: err}
		return v.failed
	}
	v.peer, v.verified = peer, true
	return nil
}

// peerKey returns the key in the peer's certificate, if the connection is one that this package makes for a protocol.
func peerKey(state tls.ConnectionState, protocol string) (identity.Public, error) {
	switch {
	case state.Version != tls.VersionTLS13:
		return identity.Public{}, fmt.Errorf("version %s", tls.VersionName(state.Version))
	case state.DidResume:
		return identity.Public{}, errors.New("a resumed session")
	case state.NegotiatedProtocol != protocol:
		return identity.Public{}, fmt.Errorf("protocol %s, not %s", quote.Text(state.NegotiatedProtocol), protocol)
	case len(state.PeerCertificates) != 1:
		return identity.Public{}, fmt.Errorf("%d certificates instead of one", len(state.PeerCertificates))
	}
	key, is := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !is {
		return identity.Public{}, errors.New("the key is not an Ed25519 key")
	}
	return identity.PublicFrom(key)
}
