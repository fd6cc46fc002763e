package devices

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// written returns the list of an inventory or a network in a form.
func written(t *testing.T, value any, form option.OutputForm) string {
	t.Helper()
	var text string
	switch value := value.(type) {
	case inventory.Inventory:
		text = textOf(value, true)
	case inventory.Network:
		text = textOfNetwork(value)
	}
	var out bytes.Buffer
	if err := output.Print(&out, form, "list", value, text); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPortRateIsLeftOutWhereUnknown(t *testing.T) {
	for rate, want := range map[uint64]string{0: "", 100_000_000: "0.1 Gb/s", 2_500_000_000: "2.5 Gb/s",
		400_000_000_000: "400 Gb/s"} {
		found := inventory.Inventory{Devices: []*inventory.Device{{PortRate: rate}}}
		text, encoded := written(t, found, option.OutputText), written(t, found, option.OutputJSON)
		if row := "port rate        " + want + "\n"; strings.Contains(text, row) != (rate > 0) {
			t.Errorf("%d: the text is\n%s", rate, text)
		}
		if strings.Contains(text, "port rate") != (rate > 0) ||
			strings.Contains(encoded, "port_rate") != (rate > 0) {
			t.Errorf("%d: the lists are\n%s%s", rate, text, encoded)
		}
	}
}

func TestDevicesOnAFullDisk(t *testing.T) {
	for _, form := range []option.OutputForm{option.OutputText, option.OutputJSON} {
		if err := output.Print(fullDisk{}, form, "devices", inventory.Inventory{}, "x"); err == nil {
			t.Errorf("no error from %s", form)
		}
	}
}

// Properties that the software device never has.
func TestUncommonDevices(t *testing.T) {
	cases := []struct {
		name   string
		device *inventory.Device
		lines  []string
	}{
		{"no names", &inventory.Device{HostSide: true},
			[]string{"RDMA device      unknown", "net device       unknown", "function         unknown"}},
		{"no capability", &inventory.Device{}, []string{"can be           neither side",
			"DMA copies       not supported",
			"memory           can be neither", "control channel  not supported", "consumers        not supported",
			"producers        not supported"}},
		{"no limit known", &inventory.Device{HostSide: true, DMA: inventory.DMA{CopySupported: true},
			FastPath: inventory.FastPath{
				Consumers: inventory.Port{Supported: true}, Producers: inventory.Port{Supported: true}}},
			[]string{"DMA copies       tasks in flight unknown\n", "control channel  limits unknown\n",
				"consumers        limits unknown\n", "producers        limits unknown\n"}},
		{"lists", &inventory.Device{FastPath: inventory.FastPath{Producers: inventory.Port{Supported: true,
			MaxListLength: 2}}},
			[]string{"producers        lists of up to 2 buffers\n"}},
		{"both sides", &inventory.Device{HostSide: true, DPUSide: true},
			[]string{"the host side or the DPU side", "represents       no host function"}},
		{"not opened", &inventory.Device{DPUSide: true, DMA: inventory.DMA{CopySupported: true, MaxBytesPerTask: 512},
			Error: "a\nb"},
			[]string{"up to 512 bytes per task, tasks in flight unknown", "not all known    a; b"}},
		{"control characters", &inventory.Device{RDMAName: "\x1b[2J"}, []string{`RDMA device      \x1b[2J`}},
		{"representor without details",
			&inventory.Device{Representors: []inventory.Representor{{HostFunction: "0000:b1:00.0"}}},
			[]string{"represents       host function 0000:b1:00.0\n"}},
		{"representors of SFs of both sides", &inventory.Device{PCIAddress: "0000:03:00.0",
			Representors: []inventory.Representor{
				{HostFunction: "0000:03:00.0", FunctionType: "SF", NetName: "en3f0pf0sf0"},
				{HostFunction: "0000:b1:00.0", FunctionType: "SF", NetName: "en3f0c1pf0sf4"}}},
			[]string{"represents       DPU function 0000:03:00.0 (SF, net device en3f0pf0sf0)\n",
				" host function 0000:b1:00.0 (SF, net device en3f0c1pf0sf4)\n"}},
	}
	for _, tc := range cases {
		out := written(t, inventory.Inventory{Devices: []*inventory.Device{tc.device}}, option.OutputText)
		for _, line := range tc.lines {
			if !strings.Contains(out, line) {
				t.Errorf("%s: %s\nlacks %q", tc.name, out, line)
			}
		}
	}
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rdmaMachine() inventory.Network {
	return inventory.NewNetwork("1.13.1", []ucx.Resource{
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
	if out := written(t, rdmaMachine(), option.OutputText); out != rdmaText {
		t.Errorf("printed\n%s", out)
	}
	without := inventory.NewNetwork("1.13.1", []ucx.Resource{{Transport: "tcp", Device: "lo"}}, nil)
	const want = "UCX 1.13.1\n  tcp              lo\n\n" +
		"no RDMA device: --path rma is not possible with another machine\n"
	if out := written(t, without, option.OutputText); out != want {
		t.Errorf("printed\n%s", out)
	}
}

func TestNetworkAsJSON(t *testing.T) {
	for _, want := range []inventory.Network{rdmaMachine(), inventory.NewNetwork("1", nil, nil)} {
		out := written(t, want, option.OutputJSON)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"transports", "rdma_ports"} {
			if _, is := got[name].([]any); !is {
				t.Errorf("%s is not an array in %s", name, out)
			}
		}
		if got["v"] != 1.0 || got["ucx_version"] != want.UCX {
			t.Errorf("%s", out)
		}
	}
}
