// Package tcpport finds out from the kernel's tables whose the TCP sockets of this machine are: which process listens
// on a port, and which user has the other end of a connection.
//
// The tables (/proc/net/tcp and tcp6) belong to this network namespace. Another user's processes do not show their
// files, so that a process may be unknown; the user of a socket never is.
package tcpport

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Owner is a process that listens on a port.
type Owner struct {
	PID     int    // 0: not known
	Command string // name of its program; empty: not known
}

// String names the process: "process 12 (dma-copy)".
func (o Owner) String() string {
	if o.PID == 0 {
		return "a process of another user"
	}
	return fmt.Sprintf("process %d (%s)", o.PID, o.Command)
}

// procRoot is where the kernel shows its tables and processes.
const procRoot = "/proc"

// Listening returns a process that listens at an address which keeps others from listening there, and reports whether
// there is one. The unspecified address stands for all addresses of the machine.
func Listening(address netip.AddrPort) (Owner, bool) { return listening(procRoot, address) }

func listening(root string, address netip.AddrPort) (Owner, bool) {
	for s := range sockets(root) {
		if s.state == stateListen && collide(s.local, address) {
			return ownerOf(root, s.inode), true
		}
	}
	return Owner{}, false
}

// PeerUser returns the user ID of the process that has made the other end of a connection of this machine with itself,
// as this process's user namespace numbers it, and reports whether there is that end. local and remote are the
// addresses of this end.
func PeerUser(local, remote netip.AddrPort) (uid int, found bool) {
	return peerUser(procRoot, local, remote)
}

func peerUser(root string, local, remote netip.AddrPort) (uid int, found bool) {
	local, remote = unmapped(local), unmapped(remote)
	for s := range sockets(root) {
		if s.state == stateEstablished && s.local == remote && s.remote == local {
			return s.uid, true
		}
	}
	return 0, false
}

// socket is a line of a table.
type socket struct {
	local, remote netip.AddrPort // IPv4 addresses are not mapped to IPv6
	state         string
	uid           int
	inode         string
}

// How the tables mark a socket that is connected, and one that listens.
const (
	stateEstablished = "01"
	stateListen      = "0A"
)

// sockets yields the sockets of both tables.
func sockets(root string) iter.Seq[socket] {
	return func(yield func(socket) bool) {
		for _, table := range []string{"tcp", "tcp6"} {
			if !readTable(filepath.Join(root, "self", "net", table), yield) {
				return
			}
		}
	}
}

// readTable yields the sockets of a table, and reports whether to go on.
func readTable(path string, yield func(socket) bool) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer file.Close() // only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if s, valid := parseSocket(lines.Text()); valid && !yield(s) {
			return false
		}
	}
	return true
}

// parseSocket parses a line of a table:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	0: 0100007F:1D3B 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 ...
func parseSocket(line string) (s socket, valid bool) {
	const local, remote, state, uid, inode = 1, 2, 3, 7, 9
	fields := strings.Fields(line)
	if len(fields) <= inode {
		return s, false
	}
	var localValid, remoteValid bool
	s.local, localValid = parseAddress(fields[local])
	s.remote, remoteValid = parseAddress(fields[remote])
	number, err := strconv.ParseUint(fields[uid], 10, 32)
	s.state, s.uid, s.inode = fields[state], int(number), fields[inode]
	return s, localValid && remoteValid && err == nil
}

// parseAddress parses an address of a table: groups of four bytes in the byte order of the machine, and the port.
func parseAddress(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(bytes)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := 0; word < len(bytes); word += 4 { // both architectures of this program are little-endian
		bytes[word], bytes[word+1], bytes[word+2], bytes[word+3] =
			bytes[word+3], bytes[word+2], bytes[word+1], bytes[word]
	}
	address, valid := netip.AddrFromSlice(bytes)
	return unmapped(netip.AddrPortFrom(address, uint16(number))), valid
}

// unmapped returns an address without a zone, and an address of IPv4 not mapped to IPv6.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// collide reports whether sockets at both addresses exclude each other.
func collide(a, b netip.AddrPort) bool {
	if a.Port() != b.Port() {
		return false
	}
	one, other := unmapped(a).Addr(), unmapped(b).Addr()
	return one == other || one.IsUnspecified() || other.IsUnspecified()
}

// ownerOf returns the process that has a socket open.
func ownerOf(root, inode string) Owner {
	want := "socket:[" + inode + "]"
	open, _ := filepath.Glob(filepath.Join(root, "[0-9]*", "fd", "*")) // the pattern is valid
	for _, path := range open {
		if target, err := os.Readlink(path); err != nil || target != want {
			continue
		}
		process := filepath.Dir(filepath.Dir(path))
		pid, _ := strconv.Atoi(filepath.Base(process)) // 0 if it is none
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		return Owner{PID: pid, Command: strings.TrimSpace(string(name))}
	}
	return Owner{}
}
