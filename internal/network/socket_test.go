package network

import (
	"errors"
	"math"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// option returns an option of a socket.
func option(t *testing.T, raw syscall.RawConn, level, name int) (value int) {
	t.Helper()
	must(t, onSocket(raw, "query", func(fd int) (err error) {
		value, err = unix.GetsockoptInt(fd, level, name)
		return err
	}))
	return value
}

// All connections of both sides have the traffic class, and data connections the rate of the bandwidth limit.
func TestSocketOptions(t *testing.T) {
	const class, rate = 0x68, 5 << 20 // AF31
	m := newMachines(t, func(s *Settings) { s.TrafficClass, s.Bandwidth = class, rate })
	both := m.meet(t)
	defer both.close(t)
	server := both.serverControl.Memory(both.server, m.Listener.settings)
	client := both.clientControl.Memory(both.client, m.settings)
	w := openWindows(t, wire.PathTLS, client, server, 1, 1)
	defer w.close(t)
	moveMany(t, w, 1, 1) // so that the server has its connection
	dialed := w.sender.Engines[0].(*sendEngine).writers[0].lane.socket.Conn.(syscall.Conn)
	data, err := dialed.SyscallConn()
	must(t, err)
	for name, raw := range map[string]syscall.RawConn{
		"server": both.serverControl.raw, "client": both.clientControl.raw, "data": data,
	} {
		if got := option(t, raw, unix.IPPROTO_IP, unix.IP_TOS); got != class {
			t.Errorf("%s: traffic class %#x", name, got)
		}
		keepalive := 0
		if name == "data" {
			keepalive = 1
		}
		if option(t, raw, unix.IPPROTO_TCP, unix.TCP_NODELAY) != 1 ||
			option(t, raw, unix.SOL_SOCKET, unix.SO_KEEPALIVE) != keepalive {
			t.Errorf("%s: delay or keepalive", name)
		}
		if keepalive == 1 && option(t, raw, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE) != 60 {
			t.Errorf("%s: the first probe is not sent after a minute", name)
		}
	}
	if got := option(t, data, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); got != rate {
		t.Errorf("the data connection is paced at %d", got)
	}
	if got := option(t, both.clientControl.raw, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); got == rate {
		t.Error("the control connection is paced")
	}
}

// No socket is one of MPTCP, which package net uses for listeners unless it is told otherwise, or for all connections
// with GODEBUG.
func TestSocketsAreOfTCP(t *testing.T) {
	t.Setenv("GODEBUG", "multipathtcp=1")
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	listening, err := m.listener.SyscallConn()
	must(t, err)
	for name, raw := range map[string]syscall.RawConn{
		"listener": listening, "server": both.serverControl.raw, "client": both.clientControl.raw,
	} {
		if got := option(t, raw, unix.SOL_SOCKET, unix.SO_PROTOCOL); got != unix.IPPROTO_TCP {
			t.Errorf("%s: protocol %d", name, got)
		}
	}
}

// A limit that needs more than 32 bits is set as it is, where the kernel has the option for it, as all since 4.20 have.
func TestPaceOfAFastNetwork(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	raw := both.clientControl.raw
	for _, rate := range []int64{math.MaxInt32, 1 << 31, 1<<40 + 5} {
		must(t, (&Settings{Bandwidth: rate}).pace(raw))
		var paced uint64
		must(t, onSocket(raw, "query", func(fd int) (err error) {
			paced, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
			return err
		}))
		if paced != uint64(rate) {
			t.Errorf("the connection is paced at %d, not %d", paced, rate)
		}
	}
}

// What is no TLS record ends a connection that is authenticated, as a message that is not authentic.
func TestGarbageAfterAuthentication(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	must(t, both.clientControl.Send(patient(t), []byte("garbage")))
	_, err := both.server.Recv(patient(t))
	if err == nil || errors.Is(err, comch.ErrPeerLost) {
		t.Errorf("got %v", err)
	}
	both.close(t)
}

// A peer that is killed in the middle of a record is lost, and has not sent anything that is not authentic.
func TestCutRecord(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	must(t, both.clientControl.Send(patient(t), []byte("\x17\x03\x03\x00\x50begins")))
	comchtest.MustClose(t, both.clientControl)
	_, err := both.server.Recv(patient(t))
	comchtest.MustBe(t, err, comch.ErrPeerLost)
	both.close(t)
}

// A Recv between the two steps of a Close, which has begun and not ended the connection yet, does not return nothing.
func TestRecvDuringClose(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	both.clientControl.closed.Store(true)
	message, err := both.clientControl.Recv(patient(t))
	if message != nil {
		t.Errorf("got %q", message)
	}
	comchtest.MustBe(t, err, comch.ErrClosed)
	both.close(t)
}

// Nothing is left of a connection: no session, and no data connection of a window that was not closed.
func TestSessionEndsWithItsConnection(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	server := both.serverControl.Memory(both.server, m.Listener.settings)
	client := both.clientControl.Memory(both.client, Settings{})
	l := testLayout(wire.PathTLS, 1)
	l.Sends = true
	held, err := client.Open(patient(t), l, native.Window{Descriptor: native.AppendLanes(nil, 1, 3)})
	must(t, err) // which the server holds
	waiting, err := server.Expose(patient(t), testLayout(wire.PathTLS, 2))
	must(t, err) // for connections that do not come
	both.close(t)
	if n := len(m.sessions.bySecret); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	writer := held.Engines[0].(*sendEngine).writers[0]
	if _, err := writer.lane.tls.Read(make([]byte, 1)); err == nil {
		t.Error("the server has sent something")
	}
	_, err = server.Open(patient(t), l, native.Window{Descriptor: native.AppendLanes(nil, 1, 4)})
	comchtest.MustBe(t, err, comch.ErrPeerLost)
	must(t, held.Close())
	must(t, waiting.Close())
}
