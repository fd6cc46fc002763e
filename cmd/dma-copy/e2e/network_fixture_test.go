package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Ports for daemons are below those that the kernel gives to connections.
const firstPort, lastPort = 20000, 32000

// reserved has a socket for each port that a test has got, whose name keeps this and other runs of the tests from
// getting it again.
var reserved struct {
	mu    sync.Mutex
	names []net.Listener
}

// freePort returns a TCP port of the loopback interface at which nothing listens, and reserves it until this process
// ends.
func freePort() (int, error) {
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	for i := range lastPort - firstPort {
		port := firstPort + (os.Getpid()+i)%(lastPort-firstPort)
		name, err := net.Listen("unix", fmt.Sprintf("@dma-copy-e2e-port-%d", port))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = name.Close()
			continue
		}
		reserved.names = append(reserved.names, name)
		return port, listener.Close()
	}
	return 0, errors.New("no free TCP port")
}

// newNetworkFixture is newDaemonFixture for two machines: the daemon, in the directory dpu, listens on TCP, and the
// commands, in the directory host, have it as their only peer. None of them uses a device.
func newNetworkFixture(t *testing.T) *daemonFixture {
	t.Helper()
	f := newDaemonFixture(t, "dpu")
	port, err := freePort()
	must(t, err)
	f.address = fmt.Sprintf("127.0.0.1:%d", port)
	peers := fmt.Sprintf(`{"peers": {"net": {"address": %q}}}`, f.address)
	must(t, os.WriteFile(filepath.Join(f.dir, "peers.json"), []byte(peers), 0o644))
	return f
}
