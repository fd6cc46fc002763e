package network

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/dma-copy/dma-copy/internal/secure"
)

// maxHello is how many bytes are read for the first TLS message of a client.
const maxHello = secure.MaxHandshakeBytes

// errNoHello means that a client's first bytes are no TLS ClientHello.
var errNoHello = errors.New("the peer does not speak TLS")

// readHello reads the first TLS message of a client. It returns all bytes that it has read, for the one who makes the
// handshake, and whether a data connection begins with them.
func readHello(from net.Conn) (read []byte, data bool, err error) {
	recorder := &helloRecorder{Conn: from}
	seen := errors.New("the message has been read")
	err = tls.Server(recorder, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			data = secure.IsData(hello.SupportedProtos)
			return nil, seen
		},
	}).Handshake()
	switch {
	case errors.Is(err, seen):
		return recorder.read.Bytes(), data, nil
	case recorder.failed != nil:
		return nil, false, recorder.failed
	default:
		return nil, false, fmt.Errorf("%w: %w", errNoHello, err)
	}
}

// helloRecorder keeps what is read, and drops what is written.
type helloRecorder struct {
	net.Conn
	read   bytes.Buffer
	failed error
}

// Read implements net.Conn.
func (r *helloRecorder) Read(b []byte) (int, error) {
	room := maxHello - r.read.Len()
	if room == 0 {
		r.failed = fmt.Errorf("%w: its first message has more than %d bytes", errNoHello, maxHello)
	}
	if r.failed != nil {
		return 0, r.failed
	}
	n, err := r.Conn.Read(b[:min(len(b), room)])
	r.read.Write(b[:n])
	if err != nil {
		r.failed = err
	}
	return n, err
}

// Write implements net.Conn.
func (*helloRecorder) Write(b []byte) (int, error) { return len(b), nil }

// resumed is a connection from which some bytes have been read already.
type resumed struct {
	*net.TCPConn
	read *bytes.Reader
}

// Read implements net.Conn.
func (r *resumed) Read(b []byte) (int, error) {
	if r.read.Len() > 0 {
		return r.read.Read(b)
	}
	return r.TCPConn.Read(b)
}
