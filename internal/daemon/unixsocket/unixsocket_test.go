package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustListen(t *testing.T, path string, mode uint32) *net.UnixListener {
	t.Helper()
	listener, err := Listen(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func mustDial(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestMode(t *testing.T) {
	for _, mode := range []uint32{0o600, 0o640} {
		path := filepath.Join(t.TempDir(), "socket")
		mustListen(t, path, mode)
		mustDial(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != os.FileMode(mode) {
			t.Errorf("mode %v, want %o: %v", info.Mode(), mode, err)
		}
	}
}

// leave leaves a socket behind, as a daemon does that is killed.
func leave(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	leave(t, path)
	listener := mustListen(t, path, 0o600)
	mustDial(t, path)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

func TestListenFails(t *testing.T) {
	directory := t.TempDir()
	file, used := filepath.Join(directory, "file"), filepath.Join(directory, "used")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustListen(t, used, 0o600)
	longest := directory + "/" + strings.Repeat("x", maxPath-len(directory)-1)
	mustListen(t, longest, 0o600)
	mustDial(t, longest)
	for path, want := range map[string]string{
		file: "not a socket", used: "another process listens there",
		filepath.Join(directory, "absent/socket"): "no such file",
		longest + "x": "it has 108 bytes: the path of a socket has at most 107 bytes",
	} {
		if _, err := Listen(path, 0o600); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	mustDial(t, used)
	if content, err := os.ReadFile(file); err != nil || string(content) != "content" {
		t.Errorf("the file has %q: %v", content, err)
	}
}
