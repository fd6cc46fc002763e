package inventory

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/cli/option"
)

func TestPortRateIsLeftOutWhereUnknown(t *testing.T) {
	for rate, want := range map[uint64]string{0: "", 100_000_000: "0.1 Gb/s", 2_500_000_000: "2.5 Gb/s",
		400_000_000_000: "400 Gb/s"} {
		found := Inventory{Devices: []*Device{{PortRate: rate}}}
		var text, encoded bytes.Buffer
		if err := errors.Join(Write(&text, found, option.OutputText),
			Write(&encoded, found, option.OutputJSON)); err != nil {
			t.Fatal(err)
		}
		if row := "port rate        " + want + "\n"; strings.Contains(text.String(), row) != (rate > 0) {
			t.Errorf("%d: the text is\n%s", rate, text.String())
		}
		if strings.Contains(text.String(), "port rate") != (rate > 0) ||
			strings.Contains(encoded.String(), "port_rate") != (rate > 0) {
			t.Errorf("%d: the lists are\n%s%s", rate, text.String(), encoded.String())
		}
	}
}

func TestDevicesOnAFullDisk(t *testing.T) {
	if err := Write(fullDisk{}, Inventory{}, option.OutputText); err == nil {
		t.Error("no error from text")
	}
	if err := Write(fullDisk{}, Inventory{}, option.OutputJSON); err == nil {
		t.Error("no error from JSON")
	}
}

// Properties that the software device never has.
func TestUncommonDevices(t *testing.T) {
	cases := []struct {
		name   string
		device *Device
		lines  []string
	}{
		{"no names", &Device{HostSide: true},
			[]string{"RDMA device      unknown", "net device       unknown", "function         unknown"}},
		{"no capability", &Device{}, []string{"can be           neither side", "DMA copies       not supported",
			"memory           can be neither", "control channel  not supported", "consumers        not supported",
			"producers        not supported"}},
		{"no limit known", &Device{HostSide: true, DMA: DMA{CopySupported: true}, FastPath: FastPath{
			Consumers: Port{Supported: true}, Producers: Port{Supported: true}}},
			[]string{"DMA copies       tasks in flight unknown\n", "control channel  limits unknown\n",
				"consumers        limits unknown\n", "producers        limits unknown\n"}},
		{"lists", &Device{FastPath: FastPath{Producers: Port{Supported: true, MaxListLength: 2}}},
			[]string{"producers        lists of up to 2 buffers\n"}},
		{"both sides", &Device{HostSide: true, DPUSide: true},
			[]string{"the host side or the DPU side", "represents       no host function"}},
		{"not opened", &Device{DPUSide: true, DMA: DMA{CopySupported: true, MaxBytesPerTask: 512}, Error: "a\nb"},
			[]string{"up to 512 bytes per task, tasks in flight unknown", "not all known    a; b"}},
		{"control characters", &Device{RDMAName: "\x1b[2J"}, []string{`RDMA device      \x1b[2J`}},
		{"representor without details", &Device{Representors: []Representor{{HostFunction: "0000:b1:00.0"}}},
			[]string{"represents       host function 0000:b1:00.0\n"}},
		{"representors of SFs of both sides", &Device{PCIAddress: "0000:03:00.0", Representors: []Representor{
			{HostFunction: "0000:03:00.0", FunctionType: "SF", NetName: "en3f0pf0sf0"},
			{HostFunction: "0000:b1:00.0", FunctionType: "SF", NetName: "en3f0c1pf0sf4"}}},
			[]string{"represents       DPU function 0000:03:00.0 (SF, net device en3f0pf0sf0)\n",
				" host function 0000:b1:00.0 (SF, net device en3f0c1pf0sf4)\n"}},
	}
	for _, tc := range cases {
		var out bytes.Buffer
		if err := Write(&out, Inventory{Devices: []*Device{tc.device}}, option.OutputText); err != nil {
			t.Fatal(err)
		}
		for _, line := range tc.lines {
			if !strings.Contains(out.String(), line) {
				t.Errorf("%s: %s\nlacks %q", tc.name, out.String(), line)
			}
		}
	}
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
