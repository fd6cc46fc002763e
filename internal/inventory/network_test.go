package inventory

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/ucx"
)

func rdmaMachine() Network {
	return NewNetwork("1.13.1", []ucx.Resource{
		{Transport: "tcp", Device: "lo"}, {Transport: "tcp", Device: "eth0"},
		{Transport: "rc_mlx5", Device: "mlx5_0:1"},
		{Transport: "ud_mlx5", Device: "mlx5_0:1"}, {Transport: "posix", Device: "memory"},
	}, []ucx.Port{{Device: "mlx5_0", Number: 1, Active: true, State: "ACTIVE", LinkLayer: "Ethernet", NetDevice: "eth0",
		GIDs: map[int]ucx.GID{3: {Address: "fe80::2", Type: "RoCE v2"}, 0: {Address: "fe80::1", Type: "IB/RoCE v1"}}}})
}

func TestNetDevices(t *testing.T) {
	n := rdmaMachine()
	if got := n.NetDevices(); !slices.Equal(got, []string{"lo", "eth0", "mlx5_0:1"}) || !n.HasRDMA() {
		t.Errorf("%q, RDMA %t", got, n.HasRDMA())
	}
	for names, want := range map[string]string{
		"": "", "lo,mlx5_0:1": "", "mlx5_0": "", "lo,eth1,x": "eth1", "mlx5_0:2": "mlx5_0:2", "mlx5": "mlx5",
		"memory": "memory",
	} {
		if got := n.UnknownDevice(strings.FieldsFunc(names, func(r rune) bool { return r == ',' })); got != want {
			t.Errorf("unknown of %q: %q, want %q", names, got, want)
		}
	}
	if NewNetwork("1", []ucx.Resource{{Transport: "tcp", Device: "lo"}}, nil).HasRDMA() {
		t.Error("TCP is taken for RDMA")
	}
}

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
