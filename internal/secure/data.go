package secure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/identity"
)

// This file is about data connections: further TLS connections between the two keys of a Conn, over which the content
// of files travels. Their bytes are no messages of a channel, so the caller makes them with package tls.

// dataProtocol is what a data connection carries (ALPN).
const dataProtocol = "dma-copy-data/1"

// IsData reports whether a client that offers these protocols (ALPN) begins a data connection.
func IsData(protocols []string) bool { return slices.Contains(protocols, dataProtocol) }

// Export derives a secret of that many bytes from the connection, which both sides have and nobody else, for one
// purpose (RFC 8446, section 7.5).
func (c *Conn) Export(purpose string, length int) ([]byte, error) {
	state := c.tls.ConnectionState()
	secret, err := state.ExportKeyingMaterial("EXPORTER-dma-copy "+purpose, nil, length)
	if err != nil {
		return nil, fmt.Errorf("derive a secret from the control connection: %w", err)
	}
	return secret, nil
}

// DataClient returns the configuration of a data connection of the TLS client, to the peer of c. It can be used several
// times.
func (c *Conn) DataClient() *tls.Config {
	return newConfig(c.own, dataProtocol, func(state tls.ConnectionState) error {
		peer, err := DataPeer(state)
		if err == nil && peer != c.peer {
			err = errors.New("the key of a data connection is not that of the control connection")
		}
		return err
	})
}

// DataServer returns the configuration of data connections of the TLS server with that key. accept is called by several
// goroutines, before the peer has proved that it has the private key; an error refuses the peer. DataPeer returns the
// key that is proved when the handshake has ended.
func DataServer(key *identity.Key, accept func(identity.Public) error) (*tls.Config, error) {
	own, err := key.TLS()
	if err != nil {
		return nil, err
	}
	return newConfig(own, dataProtocol, func(state tls.ConnectionState) error {
		peer, err := DataPeer(state)
		if err != nil {
			return err
		}
		return accept(peer)
	}), nil
}

// DataPeer returns the key of the peer of a data connection. The error is an ErrHandshake.
func DataPeer(state tls.ConnectionState) (identity.Public, error) {
	peer, err := peerKey(state, dataProtocol)
	if err != nil {
		return identity.Public{}, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return peer, nil
}
