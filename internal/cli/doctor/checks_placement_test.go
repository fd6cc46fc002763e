package doctor

import (
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/placement"
)

// twoNodes is a machine with two NUMA nodes, most devices of the other tests on the second one, and these usable CPUs.
func twoNodes(usable string) machine {
	sys := fstest.MapFS{}
	for name, line := range map[string]string{
		"devices/system/node/online":             "0-1",
		"devices/system/node/node0/cpulist":      "0-1",
		"devices/system/node/node1/cpulist":      "2-3",
		"bus/pci/devices/0000:b1:00.0/numa_node": "0",
		"bus/pci/devices/0000:b1:00.1/numa_node": "1",
		"bus/pci/devices/0000:03:00.0/numa_node": "1",
	} {
		sys[name] = &fstest.MapFile{Data: []byte(line + "\n")}
	}
	cpus, err := placement.ParseList(usable)
	return machine{placement: func() (placement.Machine, error) {
		return placement.Machine{Sys: sys, Usable: cpus},
			err
	}}
}

// wishFor returns the wish of --numa and --cores, the latter not given if empty.
func wishFor(node, cores string) placement.Wish {
	var wish placement.Wish
	wish.Node, _ = placement.ParseNode(node)
	wish.Cores, _ = placement.ParseList(cores)
	return wish
}

// withPlacement returns the settings of --numa and --cores.
func withPlacement(node, cores string) Settings {
	return Settings{Placement: wishFor(node, cores)}
}

func TestCheckPlacement(t *testing.T) {
	m := twoNodes("2-3")
	all := inventory.Inventory{Driver: hardware, Devices: []*inventory.Device{hostDevice(), dpuDevice()}}
	far := inventory.Inventory{Driver: hardware, Devices: []*inventory.Device{{PCIAddress: "0000:b1:00.0"}}}
	runCheckCases(t, []checkCase{
		{"near", checkPlacement(m, all, Settings{})[0], verdictOK, 0,
			[]string{"0000:b1:00.1, 0000:03:00.0 on NUMA node 1; a copy runs on its CPUs 2-3"}},
		{"one of two", checkPlacement(m, all, Settings{Device: "mlx5_1"})[0], verdictOK, 0,
			[]string{"placement: 0000:b1:00.1 on NUMA node 1"}},
		{"far", checkPlacement(m, far, Settings{})[0], verdictWarn, 0,
			[]string{"0000:b1:00.0 on NUMA node 0, but this process may not use any", "taskset"}},
		{"named CPUs", checkPlacement(m, far, withPlacement("auto", "1-2"))[0], verdictOK, 0,
			[]string{"runs on CPUs 2, because of --cores 1-2"}},
		{"a named node", checkPlacement(m, softInventory(), withPlacement("1", ""))[0], verdictOK, 0,
			[]string{"runs on CPUs 2-3, because of --numa 1"}},
		{"a node that is not there", checkPlacement(m, all, withPlacement("7", ""))[0], verdictFail, 3,
			[]string{"--numa 7", "choose from 0-1"}},
		{"both named", checkPlacement(m, all, withPlacement("1", "2"))[0], verdictFail, 3,
			[]string{"--cores 2 conflicts with --numa 1"}},
		{"unknown", checkPlacement(machine{placement: func() (placement.Machine, error) {
			return placement.Machine{},
				syscall.EPERM
		}}, all, Settings{})[0],
			verdictWarn, 0, []string{"placement: operation not permitted"}},
	})
	if several := checkPlacement(m, inventory.Inventory{Driver: hardware, Devices: append(far.Devices, all.Devices...)},
		Settings{}); len(several) != 2 {
		t.Errorf("devices on two nodes: %+v", several)
	}
	for name, silent := range map[string][]finding{
		"software device": checkPlacement(m, softInventory(), Settings{}),
		"off":             checkPlacement(m, all, withPlacement("off", "")),
		"device of no node": checkPlacement(m, inventory.Inventory{Driver: hardware,
			Devices: []*inventory.Device{{PCIAddress: "0000:99:00.0"}}}, Settings{}),
	} {
		if len(silent) != 0 {
			t.Errorf("%s: %+v", name, silent)
		}
	}
}
