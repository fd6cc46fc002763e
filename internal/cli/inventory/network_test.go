package inventory

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/option"
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

const rdmaText = `UCX 1.13.1
  tcp              lo, eth0
  rc_mlx5          mlx5_0:1
  ud_mlx5          mlx5_0:1
  posix            memory

RDMA port mlx5_0:1
  state            ACTIVE
  link layer       Ethernet
  net device       eth0
  GID 0            fe80::1  IB/RoCE v1
  GID 3            fe80::2  RoCE v2
`

func TestNetworkAsText(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNetwork(&out, rdmaMachine(), option.OutputText); err != nil || out.String() != rdmaText {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
	out.Reset()
	without := NewNetwork("1.13.1", []ucx.Resource{{Transport: "tcp", Device: "lo"}}, nil)
	const want = "UCX 1.13.1\n  tcp              lo\n\n" +
		"no RDMA device: --path rma is not possible with another machine\n"
	if err := WriteNetwork(&out, without, option.OutputText); err != nil || out.String() != want {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}

func TestNetworkAsJSON(t *testing.T) {
	for _, want := range []Network{rdmaMachine(), NewNetwork("1", nil, nil)} {
		var out bytes.Buffer
		if err := WriteNetwork(&out, want, option.OutputJSON); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"transports", "rdma_ports"} {
			if _, is := got[name].([]any); !is {
				t.Errorf("%s is not an array in %s", name, out.String())
			}
		}
		if got["version"] != 1.0 || got["ucx_version"] != want.UCX {
			t.Errorf("%s", out.String())
		}
	}
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
