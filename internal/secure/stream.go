package secure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// stream is the net.Conn below a tls.Conn. After the handshake it does no I/O: what package tls is to read is put in,
// and what it writes is taken out, so that no call of package tls blocks.
//
// During the handshake, Read first sends what was written, and then receives messages. They are a stream of bytes then:
// a record may be split, and a message may have several records.
type stream struct {
	raw comch.Conn
	log zerolog.Logger

	// The handshake.
	ctx      context.Context // nil when it is over
	messages int             // received
	most     int             // of messages
	bytes    int             // in them
	failed   error           // of raw, or for a limit; permanent

	in []byte // to be read

	mu  sync.Mutex // both Send and Recv may make package tls write
	out [][]byte   // one for each Write
}

var _ net.Conn = (*stream)(nil)

// nothingToRead makes a call of tls.Conn.Read fail, but not the following ones: it is temporary for package tls.
type nothingToRead struct{}

func (nothingToRead) Error() string   { return "no record to read" }
func (nothingToRead) Timeout() bool   { return true }
func (nothingToRead) Temporary() bool { return true }

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.in) == 0 {
		if s.ctx == nil {
			return 0, nothingToRead{}
		}
		if s.failed == nil {
			s.failed = s.exchange()
		}
		if s.failed != nil {
			return 0, s.failed
		}
	}
	n := copy(b, s.in)
	s.in = s.in[n:]
	return n, nil
}

var errTooMuch = fmt.Errorf("%w: its handshake has more than %d messages (over TCP: %d records) or %d KiB",
	ErrHandshake, MaxHandshakeMessages, MaxHandshakeRecords, MaxHandshakeBytes>>10)

// newStream returns the stream of a handshake over a channel.
func newStream(ctx context.Context, raw comch.Conn) *stream {
	s := &stream{raw: raw, ctx: ctx, most: MaxHandshakeMessages}
	if _, framed := raw.(RecordFramed); framed {
		s.most = MaxHandshakeRecords
	}
	return s
}

// exchange sends what was written, and receives a message of the handshake.
func (s *stream) exchange() error {
	if err := s.flush(s.ctx); err != nil {
		return err
	}
	message, err := s.raw.Recv(s.ctx)
	if err != nil {
		return err
	}
	s.trace("message received", "handshake", message)
	s.messages++
	s.bytes += len(message)
	if s.messages > s.most || s.bytes > MaxHandshakeBytes {
		return errTooMuch
	}
	s.in = message
	return nil
}

// trace logs a message that is none of those which the connection carries.
func (s *stream) trace(text, kind string, message []byte) {
	s.log.Trace().Str("protocol", "tls").Str("type", kind).Int("bytes", len(message)).Msg(text)
}

// flush sends what was written during the handshake, in as few messages as possible.
func (s *stream) flush(ctx context.Context) error {
	for message := range slices.Chunk(bytes.Join(s.take(), nil), s.raw.MaxMessage()) {
		s.trace("message sent", "handshake", message)
		if err := s.raw.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// Write implements net.Conn. Package tls writes one record, or during the handshake one or more.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, bytes.Clone(b))
	return len(b), nil
}

// take returns what was written since the last call.
func (s *stream) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

// The other methods of net.Conn have nothing to do: package tls calls those that set deadlines.

func (s *stream) Close() error                     { return errors.ErrUnsupported }
func (s *stream) LocalAddr() net.Addr              { return nil }
func (s *stream) RemoteAddr() net.Addr             { return nil }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }
