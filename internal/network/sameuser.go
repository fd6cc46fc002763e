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
// says so, not the peer: the other end of a loopback connection is in this machine's table of sockets, with its user.
// A program of this user that forwards connections of others, such as a tunnel, counts as that process.
func (c *Control) peerIsSameUser() bool {
	return isSameUser(c.socket.LocalAddr(), c.socket.RemoteAddr(), os.Geteuid(), tcpport.PeerUser)
}

func isSameUser(local, remote net.Addr, user int, peerUser func(_, _ netip.AddrPort) (int, bool)) bool {
	here, there := addressAndPort(local), addressAndPort(remote)
	if !here.Addr().Unmap().IsLoopback() || !there.Addr().Unmap().IsLoopback() || user == overflowUser {
		return false
	}
	of, found := peerUser(here, there)
	return found && of == user
}

// addressAndPort returns those of a TCP socket.
func addressAndPort(of net.Addr) netip.AddrPort {
	at, _ := of.(*net.TCPAddr) // AddrPort of nil is the zero value
	return at.AddrPort()
}
