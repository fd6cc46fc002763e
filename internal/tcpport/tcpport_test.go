package tcpport

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// lookAgain repeats a look at the tables that finds nothing: the kernel may leave out a socket of a table that changes
// while it is read.
func lookAgain[T any](look func() (T, bool)) (found T, is bool) {
	for range 100 {
		if found, is = look(); is {
			break
		}
	}
	return found, is
}

// The port of a listener of this process is found, at each address that excludes another listener.
func TestListening(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		at := listener.Addr().(*net.TCPAddr).AddrPort()
		for _, host := range []netip.Addr{at.Addr(), netip.IPv6Unspecified(), netip.IPv4Unspecified()} {
			owner, found := lookAgain(func() (Owner, bool) { return Listening(netip.AddrPortFrom(host, at.Port())) })
			if !found || owner.PID != os.Getpid() || owner.Command == "" {
				t.Errorf("%s at %s: %s, %t", at, host, owner, found)
			}
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		if owner, found := Listening(at); found && owner.PID == os.Getpid() { // another process may have it by now
			t.Errorf("%s is still that of %s", at, owner)
		}
	}
}

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1D3B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0
   1: 0200000A:1D3C 0300000A:0016 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0 0 10 0
   2: nonsense
   3: 0100007F:1D3C 0100007F:0016 01 00000000:00000000 00:00000000 00000000  1000        0 79 1 0 100 0 0 10 0
   4: 0100007F:1D3D 0100007F:0016 06 00000000:00000000 00:00000000 00000000  1000        0 80 1 0 100 0 0 10 0
   5: 0100007F:1D3E 0100007F:0016 01 00000000:00000000 00:00000000 00000000  none        0 81 1 0 100 0 0 10 0
`

// Tables of another machine: of a process of another user only the socket is known, and other states do not count.
func TestTables(t *testing.T) {
	root := writeTable(t)
	for address, want := range map[string]bool{
		"127.0.0.1:7483": true, "0.0.0.0:7483": true, "[::]:7483": true, "[::ffff:127.0.0.1]:7483": true,
		"127.0.0.1:7484": false, "10.0.0.2:7483": false, "10.0.0.2:7484": false, "[::1]:7483": false,
	} {
		owner, found := listening(root, netip.MustParseAddrPort(address))
		if found != want || found && owner.String() != "a process of another user" {
			t.Errorf("%s: %s, %t", address, owner, found)
		}
	}
}

// writeTable returns a directory that replaces /proc.
func writeTable(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	directory := filepath.Join(root, "self", "net")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "tcp"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// Each end of a connection finds the user of the other one; of a connection with another machine there is no such end.
func TestPeerUser(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []net.Conn{conn, accepted} {
			local, remote := addressOf(end.LocalAddr()), addressOf(end.RemoteAddr())
			uid, found := lookAgain(func() (int, bool) { return PeerUser(local, remote) })
			if !found || uid != os.Getuid() {
				t.Errorf("%s to %s: user %d, %t", local, remote, uid, found)
			}
			if uid, found := PeerUser(local, netip.AddrPortFrom(remote.Addr(), 1)); found {
				t.Errorf("another port is that of user %d", uid)
			}
		}
		_, _ = conn.Close(), accepted.Close()
	}
	root := writeTable(t)
	ssh := netip.MustParseAddrPort("[::ffff:127.0.0.1]:22")
	for remote, want := range map[string]bool{
		"127.0.0.1:7484": true, "127.0.0.1:7485": false, "127.0.0.1:7486": false, "10.0.0.2:7484": false,
	} {
		uid, found := peerUser(root, ssh, netip.MustParseAddrPort(remote))
		if found != want || found && uid != 1000 {
			t.Errorf("%s: user %d, %t", remote, uid, found)
		}
	}
}

func addressOf(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }
