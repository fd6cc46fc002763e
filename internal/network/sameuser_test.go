package network

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// Memory is shared with a peer only if the kernel says that it is a process of this user on this machine.
func TestSameUser(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	for _, c := range []*Control{both.clientControl, both.serverControl} {
		if same, err := c.peerIsSameUser(); !same || err != nil {
			t.Errorf("a peer within this process: %t, %v", same, err)
		}
	}
	const user = 1000
	for name, c := range map[string]struct {
		local, remote string
		peer          int // -1: not in the table
		user          int
		want, found   bool
	}{
		"the same":        {"127.0.0.1:1", "127.0.0.1:2", user, user, true, true},
		"over IPv6":       {"[::1]:1", "[::1]:2", user, user, true, true},
		"mapped":          {"[::ffff:127.0.0.1]:1", "127.0.0.1:2", user, user, true, true},
		"another user":    {"127.0.0.1:1", "127.0.0.1:2", 0, user, false, true},
		"not known":       {"127.0.0.1:1", "127.0.0.1:2", -1, user, false, false},
		"another machine": {"10.0.0.1:1", "10.0.0.2:2", user, user, false, true},
		"any user":        {"127.0.0.1:1", "127.0.0.1:2", overflowUser, overflowUser, false, true},
	} {
		peerUser := func(_, _ netip.AddrPort) (int, bool) { return c.peer, c.peer >= 0 }
		local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local))
		remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.remote))
		if got, found := isSameUser(local, remote, c.user, peerUser); got != c.want || found != c.found {
			t.Errorf("%s: %t, %t", name, got, found)
		}
	}
}

// The kernel may leave out a socket, but not each time.
func TestSameUserIsLookedForAgain(t *testing.T) {
	const user = 1000
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:1"))
	readings := 0
	same, found := isSameUser(at, at, user, func(_, _ netip.AddrPort) (int, bool) {
		readings++
		return user, readings == tableReadings
	})
	if !same || !found {
		t.Errorf("after %d readings: %t, %t", readings, same, found)
	}
}

// A peer that has gone is not taken for one of another user: what is reported is the end of the connection.
func TestSameUserOfALostPeer(t *testing.T) {
	both := newMachines(t, nil).meet(t)
	defer func() { must(t, both.client.Close()) }()
	must(t, both.server.Close())
	<-both.clientControl.Done()
	if same, err := both.clientControl.peerIsSameUser(); same || !errors.Is(err, comch.ErrPeerLost) {
		t.Errorf("%t, %v", same, err)
	}
}
