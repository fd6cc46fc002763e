package network

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
)

// A wait that ends in the middle of an attempt reports why the attempts before it failed.
func TestReasonOfTheLastWholeAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		_, err := retry(t.Context(), time.Second, func(ctx context.Context) (*Control, error) {
			if attempts++; attempts <= 2 {
				return nil, syscall.ECONNREFUSED
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, comch.ErrPeerAbsent) || !errors.Is(err, syscall.ECONNREFUSED) || attempts != 3 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}

// A client for this machine only connects to loopback addresses of both families, and at once to no other.
func TestOnlyLoopback(t *testing.T) {
	local := Settings{OnlyLoopback: true}
	for _, address := range []string{"192.0.2.1:7483", "[2001:db8::1]:7483", "0.0.0.0:7483", "[fe80::1%lo]:7483"} {
		if _, err := Dial(t.Context(), address, time.Minute, local); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%s: %v", address, err)
		}
	}
	m := newMachines(t, nil)
	_, port, err := net.SplitHostPort(m.address())
	must(t, err)
	for _, address := range []string{m.address(), "[::ffff:127.0.0.1]:" + port} {
		c, err := Dial(t.Context(), address, time.Minute, local)
		must(t, err)
		must(t, c.Close())
	}
}

// A daemon that dies while a data connection is made is lost, and has not broken the protocol.
func TestDaemonDiesWhileADataConnectionIsMade(t *testing.T) {
	for name, die := range map[string]func(*net.TCPConn){
		"reset": func(c *net.TCPConn) { _ = c.SetLinger(0) },
		"ended": func(c *net.TCPConn) { _, _ = io.CopyN(io.Discard, c, 1<<8) }, // a part of the handshake
	} {
		t.Run(name, func(t *testing.T) {
			control, listener := dialPlain(t)
			go func() {
				if c, err := listener.AcceptTCP(); err == nil {
					die(c)
					_ = c.Close()
				}
			}()
			mustLoseLane(t, control)
		})
	}
	t.Run("refused", func(t *testing.T) {
		control, listener := dialPlain(t)
		must(t, listener.Close())
		mustLoseLane(t, control)
	})
}

// dialPlain makes a control connection to a listener that takes it and says nothing.
func dialPlain(t *testing.T) (*Control, *net.TCPListener) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	control, err := Dial(patient(t), listener.Addr().String(), time.Minute, Settings{})
	must(t, err)
	t.Cleanup(func() { _ = control.Close() })
	accepted, err := listener.AcceptTCP()
	must(t, err)
	t.Cleanup(func() { _ = accepted.Close() })
	return control, listener
}

func mustLoseLane(t *testing.T, c *Control) {
	t.Helper()
	_, err := c.dialLane(patient(t), &Settings{}, &tls.Config{InsecureSkipVerify: true}, secret{}, laneID{})
	comchtest.MustBe(t, err, comch.ErrPeerLost)
}

// Whatever keeps a data connection from being made, the daemon is lost or slow, unless it is a matter of this side.
func TestDataConnectionCannotBeMade(t *testing.T) {
	slow, cancel := context.WithTimeoutCause(t.Context(), 0, errSlow)
	defer cancel()
	local := errors.New("a matter of this side")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want error
	}{
		{t.Context(), os.NewSyscallError("connect", syscall.EHOSTUNREACH), comch.ErrPeerLost},
		{t.Context(), os.NewSyscallError("connect", syscall.ECONNREFUSED), comch.ErrPeerLost},
		{t.Context(), os.NewSyscallError("read", syscall.ECONNRESET), comch.ErrPeerLost},
		{t.Context(), os.ErrDeadlineExceeded, comch.ErrPeerLost},
		{slow, os.ErrDeadlineExceeded, errSlow},
		{t.Context(), local, local},
	} {
		got := notDialed(c.ctx, c.err)
		if !errors.Is(got, c.want) || c.want == local && errors.Is(got, comch.ErrPeerLost) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// A machine that answers and has no listener is not waited for, if that is not wanted.
func TestRefusedAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	if _, err := Dial(patient(t), address, time.Hour, Settings{RefusedAtOnce: true}); !errors.Is(err, ErrNotListening) {
		t.Errorf("error %v", err)
	}
}
