package doctor

import (
	"testing"
	"testing/fstest"
)

func TestCheckMode(t *testing.T) {
	with := func(files ...string) fstest.MapFS {
		root := fstest.MapFS{
			"sys/bus/pci/devices/0000:00:1f.0/vendor": {Data: []byte("0x8086\n")},
			"sys/bus/pci/devices/0000:00:1f.0/device": {Data: []byte("0xa2dc\n")},
			"sys/class/net/eth0/phys_port_name":       {Data: []byte("p0\n")},
			"sys/class/net/eth1/phys_port_name":       {Data: []byte("pf0vf0\n")},
		}
		for i := 0; i < len(files); i += 2 {
			root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		return root
	}
	const device = "sys/bus/pci/devices/0000:b1:00.0/"
	card := []string{device + "vendor", "0x15b3\n", device + "device", "0xa2dc\n"}
	withCard := func(files ...string) fstest.MapFS { return with(append(card[:4:4], files...)...) }
	const bf3 = "card: BlueField-3 at 0000:b1:00.0, "
	runCheckCases(t, []checkCase{
		{"no card", checkMode(with()), verdictOK, 0, []string{"no BlueField"}},
		{"unknown", checkMode(withCard()), verdictOK, 0,
			[]string{bf3, "cannot be read", "mlxconfig -d 0000:b1:00.0 q"}},
		{"host, NIC mode", checkMode(withCard("dev/rshim0/misc", "DISPLAY_LEVEL 0\nBF_MODE        NIC mode\n")),
			verdictWarn, 0, []string{bf3 + "NIC mode (/dev/rshim0/misc)", "no copy works"}},
		{"host, DPU mode", checkMode(withCard("dev/rshim0/misc", "BF_MODE DPU mode\nBOOT_MODE 1\n")), verdictOK, 0,
			[]string{bf3 + "DPU mode (/dev/rshim0/misc)"}},
		{"rshim without the line", checkMode(withCard("dev/rshim0/misc", "BOOT_MODE 1\n")), verdictOK, 0,
			[]string{"cannot be read"}},
		{"DPU", checkMode(withCard("sys/class/net/pf0hpf/phys_port_name", "c1pf0\n")), verdictOK, 0,
			[]string{bf3 + "DPU mode (port c1pf0)"}},
	})
}
