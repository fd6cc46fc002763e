package network

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotLoopback means that Settings.OnlyLoopback does not permit an address.
var ErrNotLoopback = errors.New("not a loopback address")

// control is the Control of a net.Dialer and a net.ListenConfig: the first packet already has the traffic class.
func (s *Settings) control(_, address string, raw syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); s.OnlyLoopback && (err != nil || !to.Addr().Unmap().IsLoopback()) {
		return ErrNotLoopback
	}
	return s.mark(raw)
}

// mark sets the traffic class of a socket. One of IPv6 can also have peers of IPv4, and takes both.
func (s *Settings) mark(raw syscall.RawConn) error {
	if s.TrafficClass == 0 {
		return nil
	}
	return onSocket(raw, "set the traffic class", func(fd int) error {
		v6 := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, s.TrafficClass)
		if v4 := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, s.TrafficClass); v4 != nil && v6 != nil {
			return v4
		}
		return nil
	})
}

// pace limits the rate of a socket. Kernels before 4.20 take no more than 32 bits: a higher limit is left to the lanes.
func (s *Settings) pace(raw syscall.RawConn) error {
	if s.Bandwidth <= 0 {
		return nil
	}
	return onSocket(raw, "set the pacing rate", func(fd int) error {
		if s.Bandwidth <= math.MaxInt32 {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(s.Bandwidth))
		}
		rate := uint64(s.Bandwidth)
		if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
			return err
		}
		if set, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); err == nil && set == rate {
			return nil
		}
		const unlimited = -1 // the kernel has taken one half of the number
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, unlimited)
	})
}

// prepare sets the options of a connection. Whether a peer is alive is decided by heartbeats and timeouts of the
// protocol, not by TCP, and a control connection has heartbeats whenever it is in use.
func (s *Settings) prepare(conn *net.TCPConn) (syscall.RawConn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	errs := []error{s.mark(raw), conn.SetKeepAlive(false), conn.SetNoDelay(true)}
	if s.buffers > 0 {
		errs = append(errs, conn.SetReadBuffer(s.buffers), conn.SetWriteBuffer(s.buffers))
	}
	return raw, errors.Join(errs...)
}

// onSocket calls an operation with the descriptor of a socket.
func onSocket(raw syscall.RawConn, what string, operate func(fd int) error) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = operate(int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// tryWrite writes as much of the parts as the socket takes now. It must not be called while another goroutine writes.
func tryWrite(raw syscall.RawConn, parts ...[]byte) (n int, err error) {
	failed := raw.Write(func(fd uintptr) bool {
		for {
			n, err = unix.Writev(int(fd), parts)
			if !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("writev", err)
	}
	return n, nil
}

// unacknowledged returns how many bytes, or the end, the peer's kernel has not acknowledged yet.
func unacknowledged(raw syscall.RawConn) (bytes int, err error) {
	err = onSocket(raw, "query a socket", func(fd int) (err error) {
		bytes, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ)
		return err
	})
	return bytes, err
}

// established reports whether neither side of a TCP connection has ended it.
func established(raw syscall.RawConn) bool {
	const open = 1 // the state TCP_ESTABLISHED of tcp(7)
	info, err := tcpInfo(raw)
	return err == nil && info.State == open
}

func tcpInfo(raw syscall.RawConn) (info *unix.TCPInfo, err error) {
	err = onSocket(raw, "query a socket", func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return info, err
}
