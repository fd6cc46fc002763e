package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// The intervals between two attempts to connect.
const firstRetry, lastRetry = 10 * time.Millisecond, time.Second

// ErrNotListening means that the machine answers and nothing listens at the port.
var ErrNotListening = errors.New("connection refused: nothing listens there")

// Dial connects to a daemon: "HOST:PORT". If nothing listens there, it tries again until wait is over, or fails at once
// with ErrNotListening if the settings say so. The other errors are comch.ErrPeerAbsent with the reason of the last
// attempt, the cause of ctx, or at once the resolver's error for a name that does not exist.
func Dial(ctx context.Context, address string, wait time.Duration, s Settings) (*Control, error) {
	return retry(ctx, wait, func(waiting context.Context) (*Control, error) {
		c, err := dialOnce(waiting, address, &s)
		if s.RefusedAtOnce && errors.Is(err, syscall.ECONNREFUSED) {
			err = ErrNotListening
		}
		return c, err
	})
}

// retry is Dial with any attempt to connect. If the end of the wait cuts an attempt short, the reason comes from the
// attempt before, which says more.
func retry(
	ctx context.Context, wait time.Duration, attempt func(context.Context) (*Control, error),
) (*Control, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, wait, comch.ErrPeerAbsent)
	defer cancel()
	schedule := comch.Retries(firstRetry, lastRetry)
	var reason error
	for {
		c, err := attempt(waiting)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return nil, cause
		}
		if err == nil || !passes(err) {
			return c, err
		}
		if reason == nil || waiting.Err() == nil {
			reason = err
		}
		select {
		case <-time.After(schedule.NextBackOff()):
		case <-waiting.Done():
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			return nil, fmt.Errorf("%w within %s (%w)", comch.ErrPeerAbsent, wait.Round(time.Millisecond), reason)
		}
	}
}

func dialOnce(ctx context.Context, address string, s *Settings) (*Control, error) {
	socket, err := s.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c, err := newControl(socket, bytes.NewReader(nil), s)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return c, nil
}

// dial makes a TCP connection with the traffic class of the settings, without MPTCP, see Listen.
func (s *Settings) dial(ctx context.Context, address string) (*net.TCPConn, error) {
	dialer := net.Dialer{Control: s.control, KeepAlive: -1}
	dialer.SetMultipathTCP(false)
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// passes reports whether a later attempt may succeed.
func passes(err error) bool {
	if missing, is := errors.AsType[*net.DNSError](err); is {
		return missing.IsTemporary || missing.IsTimeout
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		return true
	}
	for _, passing := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EHOSTDOWN, syscall.ENETDOWN, context.DeadlineExceeded, comch.ErrPeerAbsent,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
