package network

import (
	"net"
	"net/netip"
	"testing"
)

// Memory is shared with a peer only if the kernel says that it is a process of this user on this machine.
func TestSameUser(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	if !both.clientControl.peerIsSameUser() || !both.serverControl.peerIsSameUser() {
		t.Error("a peer within this process is not found")
	}
	const user = 1000
	for name, c := range map[string]struct {
		local, remote string
		peer          int // -1: not in the table
		user          int
		want          bool
	}{
		"the same":        {"127.0.0.1:1", "127.0.0.1:2", user, user, true},
		"over IPv6":       {"[::1]:1", "[::1]:2", user, user, true},
		"mapped":          {"[::ffff:127.0.0.1]:1", "127.0.0.1:2", user, user, true},
		"another user":    {"127.0.0.1:1", "127.0.0.1:2", 0, user, false},
		"not known":       {"127.0.0.1:1", "127.0.0.1:2", -1, user, false},
		"another machine": {"10.0.0.1:1", "10.0.0.2:2", user, user, false},
		"any user":        {"127.0.0.1:1", "127.0.0.1:2", overflowUser, overflowUser, false},
	} {
		peerUser := func(_, _ netip.AddrPort) (int, bool) { return c.peer, c.peer >= 0 }
		local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local))
		remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.remote))
		if got := isSameUser(local, remote, c.user, peerUser); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
