//go:build ucx && cgo

package ucx

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestResources(t *testing.T) {
	all, err := Open(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	resources, err := all.Resources()
	if err != nil || !slices.Contains(resources, Resource{"tcp", "lo"}) {
		t.Errorf("got %v, %v, want at least tcp on lo", resources, err)
	}
	if !regexp.MustCompile(`^1\.\d+\.\d+`).MatchString(all.Version()) {
		t.Errorf("version %q", all.Version())
	}
}

// The environment does not permit other transports: over tcp, all memory of a process can be read.
func TestOnlyChosenTransportsAndDevices(t *testing.T) {
	t.Setenv("UCX_TLS", "posix,sysv,self")
	s := newSide(t, Settings{Transports: []string{"tcp"}, NetDevices: []string{"lo"}})
	resources, err := s.context.Resources()
	if err != nil || !slices.Equal(resources, []Resource{{"tcp", "lo"}}) {
		t.Errorf("got %v, %v, want tcp on lo alone", resources, err)
	}
	s.connect(s)
	if got := s.endpoint.Transports(); got != "tcp/lo" {
		t.Errorf("the endpoint uses %q", got)
	}
}

func TestUnknownDevice(t *testing.T) {
	c, err := Open(Settings{Transports: []string{"tcp"}, NetDevices: []string{"missing0"}})
	if !errors.Is(err, StatusNoDevice) {
		t.Errorf("opened %v, %v, want %v", c, err, StatusNoDevice)
	}
}

// UCX listens only while there is a worker, and only on the chosen device.
func TestPortsAreOpenWithAWorkerOnly(t *testing.T) {
	before := listening(t)
	c, err := Open(Settings{Transports: []string{"tcp"}, NetDevices: []string{"lo"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if got := listening(t); len(got) != len(before) {
		t.Errorf("with a context: %v", got)
	}
	w, err := c.NewWorker(1)
	if err != nil {
		t.Fatal(err)
	}
	open := listening(t)
	for range 100 { // the kernel may leave out a socket of a table that changes while it is read
		if len(open) > len(before) {
			break
		}
		open = listening(t)
	}
	if len(open) != len(before)+1 {
		t.Errorf("with a worker: %v", open)
	}
	for _, address := range open {
		if !address.Addr().IsLoopback() {
			t.Errorf("%v is not of lo", address)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := listening(t); len(got) != len(before) {
		t.Errorf("after the worker: %v", got)
	}
}

// listening returns the addresses at which this process listens with TCP over IPv4.
func listening(t *testing.T) (addresses []netip.AddrPort) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Join(openFiles(t), "\n")
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		const listen = "0A"
		if len(fields) < 10 || fields[3] != listen || !strings.Contains(files, "socket:["+fields[9]+"]") {
			continue
		}
		raw, err := hex.DecodeString(strings.ReplaceAll(fields[1], ":", ""))
		if err != nil || len(raw) != 6 {
			t.Fatalf("%q: %v", line, err)
		}
		ip := [4]byte{raw[3], raw[2], raw[1], raw[0]}
		addresses = append(addresses, netip.AddrPortFrom(netip.AddrFrom4(ip), binary.BigEndian.Uint16(raw[4:])))
	}
	return addresses
}
