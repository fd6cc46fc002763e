package inventory

import (
	"testing"
	"testing/fstest"
)

func TestIsNVIDIA(t *testing.T) {
	ours, other := &fstest.MapFile{Data: []byte("0x15b3\n")}, &fstest.MapFile{Data: []byte("0x8086\n")}
	sys := fstest.MapFS{
		"bus/pci/devices/0000:b1:00.1/vendor":   ours,
		"bus/pci/devices/0000:b2:00.0/vendor":   other,
		"class/infiniband/mlx5_0/device/vendor": ours,
		"class/net/enp3s0f0np0/device/vendor":   ours,
		"class/net/eth0/device/vendor":          other,
	}
	for name, want := range map[string]bool{
		"b1:00.1": true, "0000:B1:00.1": true, "mlx5_0": true, "enp3s0f0np0": true,
		"b2:00.0": false, "03:00.1": false, "eth0": false, "rxe0": false, "": false, "../b1:00.1": false, "/": false,
	} {
		if got := IsNVIDIA(sys, name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
