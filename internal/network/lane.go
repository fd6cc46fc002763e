package network

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// lane is an authenticated data connection. The server accepts it by one byte; then the sender writes frames to it, and
// the receiver nothing. The frames are in TLS, or after leaveTLS on the socket itself.
type lane struct {
	socket  *socketBuffer
	tls     *tls.Conn    // nil after leaveTLS
	content io.Reader    // of the frames
	sent    atomic.Int64 // bytes of content
}

// newLane returns a data connection before its handshake.
func newLane(conn net.Conn, side func(net.Conn, *tls.Config) *tls.Conn, config *tls.Config) *lane {
	l := &lane{socket: newSocketBuffer(conn)}
	l.tls = side(l.socket, config)
	l.content = l.tls
	return l
}

// leaveTLS ends the use of TLS, which has authenticated the peer, in both directions. Both sides call it before the
// first frame: the peer's may have arrived already, and socketBuffer has left it in the socket.
func (l *lane) leaveTLS() { l.tls, l.content = nil, l.socket.tcp() }

// socketBuffer is the connection below a TLS connection. Package tls reads and writes record by record; the buffers
// make fewer and larger system calls of that, once the peer has authenticated. Before that it has no buffers, only as
// much is read as a handshake may have, and nothing beyond the record that package tls reads: what follows the last one
// may be frames outside of TLS.
type socketBuffer struct {
	net.Conn
	room    int           // bytes that the peer may send before it has authenticated
	bounds  recordBounds  // of what it has sent before
	trusted bool          // it has
	from    *bufio.Reader // nil: nothing was read since then
	pending []byte        // written, and not sent yet; flush sends it, or the write that makes it long enough
}

// The sizes of the buffers of a data connection, in bytes. With larger ones a transfer is not faster.
const (
	readAtOnce  = 256 << 10
	writeAtOnce = 128 << 10

	// tlsBuffers is about what package tls has in addition: a record in each direction, and the keys.
	tlsBuffers = 64 << 10
)

func newSocketBuffer(conn net.Conn) *socketBuffer {
	return &socketBuffer{Conn: conn, room: secure.MaxHandshakeBytes}
}

// authenticated ends the limit of what the peer may send, and begins to use buffers. Each is made when it is needed: a
// data connection carries content in one direction.
func (s *socketBuffer) authenticated() { s.trusted = true }

// errLongHandshake is a peer that has sent more than a handshake has.
var errLongHandshake = fmt.Errorf("more than %d bytes before the end of the handshake", secure.MaxHandshakeBytes)

// Read implements net.Conn.
func (s *socketBuffer) Read(b []byte) (int, error) {
	switch {
	case s.trusted && s.from == nil:
		s.from = bufio.NewReaderSize(s.Conn, readAtOnce)
		fallthrough
	case s.trusted:
		return s.from.Read(b)
	case s.room == 0:
		return 0, errLongHandshake
	}
	n, err := s.Conn.Read(b[:min(len(b), s.room, s.bounds.next())])
	s.bounds.pass(b[:n])
	s.room -= n
	return n, err
}

// recordBounds finds the bounds of TLS records in a stream of them.
type recordBounds struct {
	header [recordHeader]byte
	known  int // bytes of the header
	left   int // bytes that follow the last header
}

// next returns how many bytes belong to the header, or the rest of the record, that is being read: at least 1.
func (r *recordBounds) next() int {
	if r.left > 0 {
		return r.left
	}
	return len(r.header) - r.known
}

// pass takes bytes of the stream, at most as many as next has returned.
func (r *recordBounds) pass(read []byte) {
	if r.left > 0 {
		r.left -= len(read)
		return
	}
	r.known += copy(r.header[r.known:], read)
	if r.known == len(r.header) {
		r.known, r.left = 0, int(binary.BigEndian.Uint16(r.header[3:]))
	}
}

// tcp returns the socket.
func (s *socketBuffer) tcp() *net.TCPConn {
	switch conn := s.Conn.(type) {
	case *net.TCPConn:
		return conn
	case *resumed: // whose bytes that were read before are part of the handshake
		return conn.TCPConn
	}
	return nil
}

// Write implements net.Conn.
func (s *socketBuffer) Write(b []byte) (int, error) {
	if !s.trusted {
		return s.Conn.Write(b)
	}
	s.pending = append(s.pending, b...)
	if len(s.pending) < writeAtOnce {
		return len(b), nil
	}
	return len(b), s.flush()
}

// flush sends what was written.
func (s *socketBuffer) flush() error {
	_, err := s.Conn.Write(s.pending)
	s.pending = s.pending[:0]
	return err
}

// Close closes the connection. It unblocks readFrame and writeFrame.
func (l *lane) Close() error { return l.socket.Conn.Close() }

// greetingSize is the size of the first message of a data connection: secret, window and lane.
const greetingSize = len(secret{}) + 8 + 1

// taken is the server's answer to it.
const taken = 1

func (id laneID) greeting(of secret) []byte {
	return append(binary.BigEndian.AppendUint64(of[:], id.window), id.lane)
}

func decodeGreeting(g [greetingSize]byte) (of secret, id laneID) {
	n := copy(of[:], g[:])
	return of, laneID{window: binary.BigEndian.Uint64(g[n:]), lane: g[n+8]}
}

// message is what the log shows of a message of a data connection.
type message struct {
	kind     string
	bytes    int
	from, to string // states of the connection
}

var (
	joinMessage   = message{"JOIN", greetingSize, "authenticated", "joining"}
	joinedMessage = message{"JOINED", 1, "joining", "joined"}
)

// trace logs a message, as job.Trace does.
func (s *Settings) trace(text string, m message, id laneID) {
	event := s.Log.Trace()
	if event == nil {
		return
	}
	event.Str("protocol", "data").Str("type", m.kind).Int("bytes", m.bytes).
		Str("window", fmt.Sprintf("%016x", id.window)).Uint8("lane", id.lane).
		Str("from", m.from).Str("to", m.to).Msg(text)
}

// within makes a handshake with a connection, which is closed if ctx ends or the handshake fails.
func within(ctx context.Context, conn net.Conn, handshake func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err := handshake()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
	}
	return err
}

// acceptData lets the peer of a data connection prove its key, and hands the connection over to its session. With an
// error it is the caller's.
func (l *Listener) acceptData(socket *resumed, from *source, leave func()) error {
	ctx, cancel := context.WithTimeoutCause(l.ctx, helloTime, errSlow)
	defer cancel()
	end, err := from.handshake(ctx)
	if err != nil {
		return err
	}
	defer end()
	accepted := newLane(socket, tls.Server, l.data)
	err = within(ctx, socket, func() error { return l.meet(accepted) })
	if err != nil {
		return err
	}
	leave()
	return nil
}

// meet makes the handshake of a data connection.
func (l *Listener) meet(accepted *lane) error {
	if err := accepted.tls.Handshake(); err != nil {
		return fmt.Errorf("%w: %s", secure.ErrHandshake, quote.Bare(err.Error()))
	}
	peer, err := secure.DataPeer(accepted.tls.ConnectionState())
	if err != nil {
		return err
	}
	var greeting [greetingSize]byte
	if _, err := io.ReadFull(accepted.tls, greeting[:]); err != nil {
		return fmt.Errorf("%w: %s", secure.ErrHandshake, quote.Bare(err.Error()))
	}
	named, id := decodeGreeting(greeting)
	l.settings.trace("message received", joinMessage, id)
	session, err := l.sessions.find(named, peer)
	if err != nil {
		return err
	}
	at, err := session.reserve(id) // before the answer, which promises that it is taken
	if err != nil {
		return err
	}
	if err := l.answer(accepted, id); err != nil {
		session.end(id, at)
		return err
	}
	return session.deliver(id, at, accepted)
}

// answer tells the peer that its data connection is taken.
func (l *Listener) answer(accepted *lane, id laneID) error {
	if err := l.settings.adjust(accepted); err != nil {
		return err
	}
	l.settings.trace("message sent", joinedMessage, id)
	if _, err := accepted.tls.Write([]byte{taken}); err != nil {
		return err
	}
	accepted.socket.authenticated()
	return nil
}

// The probes of data connections that carry nothing. A firewall or a NAT on the way forgets a connection without
// packets, some after four minutes. The probes do not decide whether the peer is alive: a data connection is lost
// after them at the earliest, minutes after the heartbeats of the control connection.
var probes = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: time.Minute, Count: 9}

// adjust sets the options of a data connection's socket.
func (s *Settings) adjust(l *lane) error {
	socket := l.socket.tcp()
	raw, err := s.prepare(socket)
	if err != nil {
		return err
	}
	return errors.Join(s.pace(raw), socket.SetKeepAliveConfig(probes))
}

// dialLane makes a data connection of the client.
func (c *Control) dialLane(ctx context.Context, s *Settings, config *tls.Config, of secret, id laneID) (*lane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloTime, errSlow)
	defer cancel()
	socket, err := s.dial(ctx, c.socket.RemoteAddr().String())
	if err != nil {
		return nil, fmt.Errorf("open a data connection: %w", notDialed(ctx, err))
	}
	dialed := newLane(socket, tls.Client, config)
	err = within(ctx, socket, func() error { return dialed.join(s, of, id) })
	if err != nil {
		return nil, fmt.Errorf("open a data connection: %w", err)
	}
	return dialed, nil
}

// notDialed returns why a daemon that has a control connection cannot be reached any more.
func notDialed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if passes(err) || isEnd(err) {
		return fmt.Errorf("%w (%w)", errNotTaken, err)
	}
	return err
}

// errNotTaken is a server that closes a data connection, or answers otherwise.
var errNotTaken = fmt.Errorf("%w: the daemon did not take a data connection", comch.ErrPeerLost)

// join makes the handshake of a data connection.
func (l *lane) join(s *Settings, of secret, id laneID) error {
	if err := s.adjust(l); err != nil {
		return err
	}
	if err := l.tls.Handshake(); err != nil {
		if isEnd(err) {
			return fmt.Errorf("%w (%s)", errNotTaken, quote.Bare(err.Error()))
		}
		return fmt.Errorf("%w: %s", secure.ErrHandshake, quote.Bare(err.Error()))
	}
	s.trace("message sent", joinMessage, id)
	if _, err := l.tls.Write(id.greeting(of)); err != nil {
		return fmt.Errorf("%w (%s)", errNotTaken, quote.Bare(err.Error()))
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(l.tls, answer); err != nil {
		return fmt.Errorf("%w (%s)", errNotTaken, quote.Bare(err.Error()))
	}
	if !bytes.Equal(answer, []byte{taken}) {
		return errNotTaken
	}
	s.trace("message received", joinedMessage, id)
	l.socket.authenticated()
	return nil
}

// isEnd reports whether the other side has ended a connection, or the system has because that process is gone.
func isEnd(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
