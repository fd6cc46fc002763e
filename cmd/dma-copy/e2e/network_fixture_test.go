package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// Ports for daemons are below those that the kernel gives to connections, and no test gets one twice.
const firstPort, lastPort = 20000, 32000

var usedPorts atomic.Int64

// freePort returns a TCP port of the loopback interface at which nothing listens.
func freePort() (int, error) {
	for range lastPort - firstPort {
		port := firstPort + (os.Getpid()+int(usedPorts.Add(1)))%(lastPort-firstPort)
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
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
