package network

import (
	"net"
	"net/netip"
	"os"

	"github.com/dma-copy/dma-copy/internal/tcpport"
)

// overflowUser is the number of every user that the user namespace of this process does not have, by the kernel's
// default.
const overflowUser = 65534

// peerIsSameUser reports whether the peer of an open connection is a process of this user on this machine. The kernel
// says so, not the peer: the other end of a loopback connection is in this machine's table of sockets, with its user. A
// program of this user that forwards connections of others, such as a tunnel, counts as that process. The table has
// only open connections: if the peer has ended this one, the connection's error is returned.
func (c *Control) peerIsSameUser() (bool, error) {
	same, found := isSameUser(c.socket.LocalAddr(), c.socket.RemoteAddr(), os.Geteuid(), tcpport.PeerUser)
	if !found && !established(c.raw) {
		return false, c.lost()
	}
	return same, nil
}

// tableReadings is how often a peer is looked for: the kernel may leave out a socket of a table that changes while it
// is read.
const tableReadings = 3

// isSameUser reports whether the other end of a connection is of this user, and whether it was found, if it had to be
// looked for.
func isSameUser(
	local, remote net.Addr, user int, peerUser func(_, _ netip.AddrPort) (int, bool),
) (same, found bool) {
	here, there := addressAndPort(local), addressAndPort(remote)
	if !here.Addr().Unmap().IsLoopback() || !there.Addr().Unmap().IsLoopback() || user == overflowUser {
		return false, true
	}
	for range tableReadings {
		if of, found := peerUser(here, there); found {
			return of == user, true
		}
	}
	return false, false
}

// addressAndPort returns the address and port of a TCP socket.
func addressAndPort(of net.Addr) netip.AddrPort {
	at, _ := of.(*net.TCPAddr) // AddrPort of nil is the zero value
	return at.AddrPort()
}
