//go:build cgo

package doca

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	ourServer = "dma copy server"
	// The socket of that server on 03:00.0 for the host function b1:00.1.
	ourSocket = "comch.0000:b1:00.1.0000:03:00.0.dma%20copy%20server"
)

// listenOn leaves a listening socket at the path, of the type that the software device uses.
func listenOn(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// leaveSocket leaves the socket of a killed process.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	listener := listenOn(t, path)
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// shortDir returns a directory whose paths fit into a socket address.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestAbsentSoftDirIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent")
	found, err := InspectSoftDir(path)
	if err != nil || found.Exists || found.Path != path {
		t.Errorf("found %+v, error %v", found, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the look made the directory: %v", err)
	}
}

func TestSoftDirOfTheEnvironment(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_DIR", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	found, err := InspectSoftDir("")
	if want := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "dma-copy"); err != nil || found.Path != want {
		t.Errorf("path %q, error %v, want %q", found.Path, err, want)
	}
	named := t.TempDir()
	t.Setenv("DMA_COPY_SOFT_DIR", named)
	if found, err := InspectSoftDir(""); err != nil || found.Path != named || !found.Exists {
		t.Errorf("found %+v, error %v, want %q", found, err, named)
	}
}

func TestOwnerAndModeOfSoftDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	found, err := InspectSoftDir(dir)
	if err != nil || found.Owner != os.Geteuid() || found.Mode != fs.ModeDir|0o770 {
		t.Errorf("found %+v, error %v", found, err)
	}
}

func TestFileInPlaceOfSoftDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := InspectSoftDir(path)
	if err != nil || !found.Exists || found.Mode.IsDir() {
		t.Errorf("found %+v, error %v", found, err)
	}
}

func TestSocketsOfSoftDir(t *testing.T) {
	dir := shortDir(t)
	listenOn(t, filepath.Join(dir, ourSocket))
	leaveSocket(t, filepath.Join(dir, "mem.1.0000000000000001"))
	leaveSocket(t, filepath.Join(dir, "another file"))
	for _, file := range []string{"lock", "comch.file"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := InspectSoftDir(dir)
	want := []SoftSocket{{File: ourSocket}, {File: "mem.1.0000000000000001", Stale: true}}
	if err != nil || !slices.Equal(found.Sockets, want) {
		t.Errorf("sockets %+v, error %v, want %+v", found.Sockets, err, want)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("the look changed the directory: %v, error %v", left, err)
	}
}

func TestServersOfSoftDir(t *testing.T) {
	dir := SoftDir{Sockets: []SoftSocket{
		{File: ourSocket},
		{File: "comch.0000:b1:00.1.0000:03:00.1.dma%20copy%20server", Stale: true},
		{File: "comch.0000:b1:00.1.0000:03:00.1.other"},
		{File: "comch.0000:b1:00.0.0000:03:00.1.dma%20copy%20server"},
		{File: "comch.sf04:b1:00.0.0000:03:00.0.dma%20copy%20server"},
		{File: "comch.0000:b1:00.1."},
		{File: "mem.1.0000000000000001"},
	}}
	cases := []struct {
		function string
		want     []string
	}{
		{"b1:00.1", []string{"0000:03:00.0"}},
		{"0000:B1:00.0", []string{"0000:03:00.1"}},
		{"mlx5_1", []string{"0000:03:00.0"}},
		{"pf0hpf", []string{"0000:03:00.1"}},
		{"SOFT00000000MLNXS0D0F0", []string{"0000:03:00.1"}},
		{"mlx5_5", []string{"0000:03:00.0"}},
		{"enp177s0f0s4", []string{"0000:03:00.0"}},
		{"en3f0c1pf0sf4", []string{"0000:03:00.0"}},
		{"b2:00.0", nil},
	}
	for _, tc := range cases {
		if got, err := dir.Servers(tc.function, ourServer); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, error %v, want %q", tc.function, got, err, tc.want)
		}
	}
	if _, err := dir.Servers("b1:00:0", ourServer); !errors.Is(err, ErrBadAddress) {
		t.Errorf("error %v", err)
	}
}

// Inspecting a waiting server must not appear to it as a client.
func TestLookDoesNotDisturbAServer(t *testing.T) {
	dir := shortDir(t)
	driver, err := Open(Options{Choice: ChooseSoft, SoftDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	dpu, err := driver.OpenDevice("03:00.0")
	if err != nil {
		t.Fatal(err)
	}
	defer dpu.Close()
	rep, err := dpu.OpenRepresentor("b1:00.1")
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	server, err := dpu.Listen(rep, ourServer, ChannelConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for range 10 {
		found, err := InspectSoftDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		devices, err := found.Servers("b1:00.1", ourServer)
		if err != nil || !slices.Equal(devices, []string{"0000:03:00.0"}) {
			t.Fatalf("devices %q, error %v", devices, err)
		}
	}
	checkFirstClient(t, driver, server)
}

// checkFirstClient connects as a host and expects to be the first client that the server sees.
func checkFirstClient(t *testing.T, driver *Driver, server *Server) {
	t.Helper()
	host, err := driver.OpenDevice("b1:00.1")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	caller, err := host.NewClient(ourServer, ChannelConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	client, err := caller.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := server.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Send(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if message, err := accepted.Recv(t.Context()); err != nil || string(message) != "hello" {
		t.Errorf("the first client sent %q, error %v", message, err)
	}
}
