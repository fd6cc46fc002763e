package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/tcpport"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// networkMachine has an RDMA device, keys and enough locked memory.
func networkMachine() machine {
	return machine{
		network: func() (inventory.Network, error) {
			return inventory.NewNetwork("1.13.1", []ucx.Resource{
				{Transport: "tcp", Device: "eth0"}, {Transport: "rc_mlx5", Device: "mlx5_0:1"},
				{Transport: "rc_verbs", Device: "rxe0:1"},
			}, []ucx.Port{
				{Device: "mlx5_0", Number: 1, Active: true, State: "ACTIVE",
					GIDs: map[int]ucx.GID{3: {Address: "fe80::2", Type: "RoCE v2"}}},
				{Device: "rxe0", Number: 1, Active: true, State: "ACTIVE",
					GIDs: map[int]ucx.GID{1: {Address: "fe80::3", Type: "RoCE v2"}}},
			}), nil
		},
		memlock:    func() (uint64, error) { return unix.RLIM_INFINITY, nil },
		mayLockAny: func() bool { return false },
		verbs:      func() []string { return []string{"/dev/infiniband/uverbs0"} },
		accessible: func(string) error { return nil },
		user:       func() account { return account{id: 1, name: "someone"} },
		listener:   func(netip.AddrPort) (tcpport.Owner, bool) { return tcpport.Owner{}, false },
		pacing:     func() error { return nil },
		keys:       func() (keys, error) { return keys{path: "/etc/dma-copy", trusted: 2}, nil },
	}
}

func networkSettings() Settings {
	return Settings{
		Driver: device.Driver{Name: string(connect.DriverUCX)},
		Listen: netip.MustParseAddrPort("[::]:7483"), IdleTimeout: 30 * time.Second,
	}
}

// A machine that has everything has no warning, and each lack has its line, its next step and its exit code.
func TestNetworkChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*machine, *Settings)
		line   string // empty: no warning
		code   int
	}{
		"everything": {func(*machine, *Settings) {}, "", exit.OK},
		"without UCX": {func(m *machine, _ *Settings) {
			m.network = func() (inventory.Network, error) {
				return inventory.Network{}, fmt.Errorf("%w: libucp.so.0", ucx.ErrUnavailable)
			}
		}, "FAIL  UCX: UCX is not available: libucp.so.0; without it only the paths tls and tcp are possible",
			exit.Device},
		"without RDMA": {withNetwork(inventory.NewNetwork("1", []ucx.Resource{{Transport: "tcp", Device: "lo"}}, nil)),
			"ok    RDMA devices: none; files are copied over TLS", exit.OK},
		"no transport": {withNetwork(inventory.NewNetwork("1", nil, nil)), "FAIL  transports: UCX can use none",
			exit.Device},
		"port down": {withNetwork(inventory.NewNetwork("1", []ucx.Resource{{Transport: "tcp", Device: "lo"}},
			[]ucx.Port{{Device: "mlx5_0", Number: 1, State: "DOWN"}})),
			"warn  RDMA devices: no port is active: mlx5_0:1 (down)", exit.OK},
		"no user-space driver": {withNetwork(inventory.NewNetwork("1", []ucx.Resource{{Transport: "tcp", Device: "lo"}},
			[]ucx.Port{{Device: "mlx5_0", Number: 1, Active: true}})),
			"warn  RDMA devices: mlx5_0:1, but UCX has no transport for them", exit.OK},
		"net device":       {withDevices("mlx5_0:1"), "ok    network devices: mlx5_0:1", exit.OK},
		"without its port": {withDevices("mlx5_0"), "ok    network devices: mlx5_0", exit.OK},
		"unknown net device": {withDevices("eth1"),
			"FAIL  network devices: UCX knows no eth1  -- give some of: eth0, mlx5_0:1, rxe0:1", exit.Device},
		"GID": {func(_ *machine, s *Settings) { s.GIDIndex = new(3) },
			"ok    GID index: 3: mlx5_0:1 has fe80::2 (RoCE v2)", exit.OK},
		"unknown GID": {func(_ *machine, s *Settings) { s.GIDIndex = new(int) },
			"FAIL  GID index: no port has an entry 0", exit.Device},
		"GID of another device": {func(_ *machine, s *Settings) {
			s.NetDevices, s.GIDIndex = []string{"rxe0"}, new(3)
		}, "FAIL  GID index: no port has an entry 3", exit.Device},
		"derived acknowledgements": {func(*machine, *Settings) {}, "ok    acknowledgements: an RDMA device " +
			"sends again after 937.5ms, 3 times, as follows from --idle-timeout 30s", exit.OK},
		"chosen acknowledgements": {func(_ *machine, s *Settings) {
			s.AckTimeout, s.AckRetries = 100*time.Millisecond, 1
		}, "ok    acknowledgements: an RDMA device sends again after 100ms, 1 time\n", exit.OK},
		"late acknowledgements": {func(_ *machine, s *Settings) { s.AckTimeout = 2 * time.Second },
			"warn  acknowledgements: an RDMA device sends again after 2s, 3 times, and so may give up as late as " +
				"32s, after --idle-timeout 30s  -- lower them, or raise --idle-timeout", exit.OK},
		"acknowledgements without RDMA": {func(_ *machine, s *Settings) {
			s.NetDevices, s.AckRetries = []string{"eth0"}, 2
		}, "warn  acknowledgements: without RDMA devices, these settings have no effect", exit.OK},
		"device memory": {func(_ *machine, s *Settings) { s.DeviceMemory = 8 << 10 },
			"ok    device memory: 8.0 KiB for each buffer of rc_mlx5/mlx5_0:1\n", exit.OK},
		"device without memory": {func(_ *machine, s *Settings) {
			s.NetDevices, s.DeviceMemory = []string{"rxe0:1"}, 8<<10
		}, "warn  device memory: no transport here uses it", exit.OK},
		"no pacing": {func(m *machine, _ *Settings) { m.pacing = func() error { return unix.ENOPROTOOPT } },
			"FAIL  pacing: the kernel cannot limit the rate of a TCP connection: protocol not available", exit.Device},
		"locked memory": {func(m *machine, _ *Settings) {
			m.memlock = func() (uint64, error) { return 1 << 16, nil }
		}, "FAIL  locked memory: the limit is 64 KiB", exit.Device},
		"locked memory for the window only": {func(m *machine, _ *Settings) {
			m.memlock = func() (uint64, error) { return 100 << 20, nil }
		}, "FAIL  locked memory: the limit is 100 MiB", exit.Device},
		"DSCP": {func(_ *machine, s *Settings) { s.TrafficClass = 104 },
			"ok    traffic class: 104, which is the DSCP 26", exit.OK},
		"ECN": {func(_ *machine, s *Settings) { s.TrafficClass = 105 },
			"warn  traffic class: 105 has the bits of ECN set", exit.OK},
		"port in use": {func(m *machine, _ *Settings) {
			owner := tcpport.Owner{PID: 12, Command: "nginx"}
			m.listener = func(netip.AddrPort) (tcpport.Owner, bool) { return owner, true }
		}, "FAIL  port: [::]:7483 is in use by process 12 (nginx)", exit.Device},
		"no key": {withKeys(keys{path: "/k", own: identity.ErrNoKey}, nil),
			"FAIL  keys: none in /k  -- run dma-copy keys new", exit.Usage},
		"unreadable key": {withKeys(keys{own: errors.New("mode 0644")}, nil), "FAIL  keys: mode 0644",
			exit.Refused},
		"no directory":   {withKeys(keys{}, errors.New("a file")), "FAIL  keys: a file", exit.Usage},
		"nobody trusted": {withKeys(keys{path: "/k"}, nil), "warn  keys: no key is trusted in /k", exit.OK},
		"trusted key unsafe": {withKeys(keys{refused: []error{errors.New("x")}}, nil), "warn  keys: a trusted key",
			exit.OK},
	} {
		m, s := networkMachine(), networkSettings()
		tc.change(&m, &s)
		var out bytes.Buffer
		err := writeFindings(&out, examine(m, s), nil, nil, s)
		if exit.Code(err) != tc.code || !strings.Contains(out.String(), tc.line) {
			t.Errorf("%s: %v, printed\n%s\nlacks %q", name, err, out.String(), tc.line)
		}
		if tc.line == "" && strings.Contains(out.String(), "warn") {
			t.Errorf("%s: printed\n%s", name, out.String())
		}
	}
}

func withNetwork(n inventory.Network) func(*machine, *Settings) {
	return func(m *machine, _ *Settings) { m.network = func() (inventory.Network, error) { return n, nil } }
}

func withDevices(names ...string) func(*machine, *Settings) {
	return func(_ *machine, s *Settings) { s.NetDevices = names }
}

func withKeys(k keys, err error) func(*machine, *Settings) {
	return func(m *machine, _ *Settings) { m.keys = func() (keys, error) { return k, err } }
}

// --listen alone checks neither a device nor UCX, which a daemon for other machines can do without.
func TestListenIsCheckedWithoutUCX(t *testing.T) {
	m, s := networkMachine(), networkSettings()
	m.network, s.Driver.Name = nil, device.DriverAuto
	var out bytes.Buffer
	const want = `ok    traffic class: the default of the system
ok    pacing: the kernel can limit the rate of a TCP connection, for --bwlimit
ok    port: [::]:7483 is free
ok    keys: this machine's own, and 2 trusted ones, in /etc/dma-copy
ok    user: someone (1), groups 
`
	if err := writeFindings(&out, examine(m, s), nil, nil, s); err != nil || out.String() != want {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}

// With a device, both are checked.
func TestListenIsCheckedBesideADevice(t *testing.T) {
	m, s := networkMachine(), networkSettings()
	m.installation = func() (doca.Installation, error) { return installation, nil }
	m.inventory = func() (inventory.Inventory, error) { return inventory.Inventory{}, errors.New("no driver") }
	m.leftovers = func() ([]string, error) { return nil, nil }
	m.partials = func() ([]disk.Leftover, error) { return nil, nil }
	m.root = fstest.MapFS{}
	s.Driver.Name, s.Device = device.DriverDOCA, "b1:00.1"
	var out bytes.Buffer
	err := writeFindings(&out, examine(m, s), nil, nil, s)
	if err == nil {
		t.Error("no error without a driver")
	}
	for _, line := range []string{"ok    port: [::]:7483 is free\n", "FAIL  driver: "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("printed\n%s\nlacks %q", out.String(), line)
		}
	}
}

// The keys are read as a daemon would read them.
func TestReadKeys(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	k, err := readKeys(directory, os.Geteuid(), os.Getenv)
	if err != nil || !errors.Is(k.own, identity.ErrNoKey) || k.path != directory {
		t.Errorf("an empty directory: %+v, %v", k, err)
	}
	store, err := identity.OpenStore(directory)
	if err != nil {
		t.Fatal(err)
	}
	own, err := identity.Generate()
	if err == nil {
		err = store.SaveKey(own)
	}
	if err == nil {
		err = store.Trust(identity.Grant{Name: "lab", Key: own.Public()}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if k, err := readKeys(directory, os.Geteuid(), os.Getenv); err != nil || k.own != nil || k.trusted != 1 {
		t.Errorf("%+v, %v", k, err)
	}
}
