package placement

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dma-copy/dma-copy/internal/exit"
)

const (
	device    = "0000:b1:00.1" // on node 1 of twoNodes
	elsewhere = "0000:c1:00.0" // on node 2 of threeNodes, which has no CPU
	adrift    = "0000:03:00.0" // on no node
)

// sysfs returns a tree of one-line files.
func sysfs(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, line := range files {
		tree[name] = &fstest.MapFile{Data: []byte(line + "\n")}
	}
	return tree
}

var (
	oneNode = sysfs(map[string]string{
		"devices/system/node/online": "0", "devices/system/node/node0/cpulist": "0-7",
		"bus/pci/devices/" + device + "/numa_node": "0",
	})
	twoNodes = sysfs(map[string]string{
		"devices/system/node/online": "0-1", "devices/system/node/node0/cpulist": "0-3,8-11",
		"devices/system/node/node1/cpulist":        "4-7,12-15",
		"bus/pci/devices/" + device + "/numa_node": "1", "bus/pci/devices/" + adrift + "/numa_node": "-1",
	})
	threeNodes = sysfs(map[string]string{ // the last one is memory alone, and numbers need not be dense
		"devices/system/node/online": "0,2", "devices/system/node/node0/cpulist": "0-15",
		"devices/system/node/node2/cpulist":           "",
		"bus/pci/devices/" + elsewhere + "/numa_node": "2",
	})
	withoutNUMA = sysfs(nil)
)

func mustList(t *testing.T, text string) Set {
	t.Helper()
	if text == "" {
		return Set{}
	}
	s, err := ParseList(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustWish(t *testing.T, node, cores string) Wish {
	t.Helper()
	n, err := ParseNode(node)
	if err != nil {
		t.Fatal(err)
	}
	return Wish{Cores: mustList(t, cores), Node: n}
}

func TestDecisions(t *testing.T) {
	const all = "0-15"
	cases := []struct {
		name                string
		sys                 fs.FS
		usable, node, cores string
		device              string
		cpus                string
		on                  int
	}{
		{"device's node", twoNodes, all, "auto", "", device, "4-7,12-15", 1},
		{"what is usable of the device's node", twoNodes, "0-5", "auto", "", device, "4-5", 1},
		{"nothing usable of the device's node", twoNodes, "0-3", "auto", "", device, "", 1},
		{"device on no node", twoNodes, all, "auto", "", adrift, "", -1},
		{"device that the kernel does not show", twoNodes, all, "auto", "", "0000:99:00.0", "", -1},
		{"no hardware", twoNodes, all, "auto", "", "", "", -1},
		{"off", twoNodes, all, "off", "", device, "", -1},
		{"one node", oneNode, all, "auto", "", device, "", -1},
		{"no nodes", withoutNUMA, all, "auto", "", device, "", -1},
		{"device beside memory alone", threeNodes, all, "auto", "", elsewhere, "", 2},
		{"named node", twoNodes, all, "0", "", device, "0-3,8-11", 0},
		{"named node without hardware", oneNode, "0-1", "0", "", "", "0-1", 0},
		{"what is usable of the named node", twoNodes, "3-4", "0", "", device, "3", 0},
		{"named CPUs", twoNodes, all, "auto", "3-4", device, "3-4", -1},
		{"named CPUs, no node", twoNodes, all, "off", "3-4", device, "3-4", -1},
		{"what is usable of the named CPUs", withoutNUMA, "0-1", "auto", "1-9", "", "1", -1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			m := Machine{Sys: tc.sys, Usable: mustList(t, tc.usable)}
			got, err := m.decide(mustWish(t, tc.node, tc.cores), tc.device)
			want := Decision{CPUs: mustList(t, tc.cpus), Node: tc.on}
			if err != nil || got != want || got.HasNode() != (tc.on >= 0) {
				t.Errorf("CPUs %q, node %d, error %v", got.CPUs, got.Node, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	cases := []struct {
		name                string
		sys                 fs.FS
		usable, node, cores string
		want                string
	}{
		{"unusable CPUs", twoNodes, "0-1", "auto", "2-99", "this process may use none of these CPUs: choose from 0-1"},
		{"no such node", twoNodes, "0-15", "2", "", "this machine has no such NUMA node: choose from 0-1"},
		{"a gap in the nodes", threeNodes, "0-15", "1", "", "this machine has no such NUMA node: choose from 0,2"},
		{"no nodes", withoutNUMA, "0-15", "0", "",
			"the kernel shows no NUMA nodes here: leave it out, or name CPUs with --cores"},
		{"node of memory alone", threeNodes, "0-15", "2", "",
			"this NUMA node has memory only, and no CPU: choose another one"},
		{"unusable node", twoNodes, "0-3", "1", "",
			"this process may use 0-3 and none of that node's CPUs, 4-7,12-15: " +
				"choose another node, or allow it those (cpuset, taskset)"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			m := Machine{Sys: tc.sys, Usable: mustList(t, tc.usable)}
			wish := mustWish(t, tc.node, tc.cores)
			got, err := m.decide(wish, device)
			refused, is := errors.AsType[*exit.Error](err)
			if !is || refused.ExitCode() != exit.Usage || refused.Error() != wish.Flag()+": "+tc.want ||
				got != (Decision{}) {
				t.Errorf("decided %+v, error %v, want %q", got, err, tc.want)
			}
		})
	}
}

// broken returns twoNodes with another line in one file, or without that file.
func broken(name, line string) fs.FS {
	tree := maps.Clone(twoNodes)
	tree[name] = &fstest.MapFile{Data: []byte(line)}
	if line == "" {
		delete(tree, name)
	}
	return tree
}

// A malformed file of the kernel is an error, but no refusal of the wish.
func TestUnreadableSysfs(t *testing.T) {
	cases := []struct {
		node, part string
		sys        fs.FS
	}{
		{"auto", "/sys/devices/system/node/online", broken("devices/system/node/online", "many")},
		{"1", "/sys/devices/system/node/online", broken("devices/system/node/online", "many")},
		{"auto", "/sys/devices/system/node/node1/cpulist", broken("devices/system/node/node1/cpulist", "4-")},
		{"1", "/sys/devices/system/node/node1/cpulist", broken("devices/system/node/node1/cpulist", "4-")},
		{"auto", "/sys/bus/pci/devices/" + device + "/numa_node",
			broken("bus/pci/devices/"+device+"/numa_node", "first")},
		{"1", "read the machine's NUMA nodes", broken("devices/system/node/node1/cpulist", "")},
	}
	for _, tc := range cases {
		_, err := Machine{Sys: tc.sys, Usable: setOf(4)}.decide(mustWish(t, tc.node, ""), device)
		_, refused := errors.AsType[*exit.Error](err)
		if err == nil || refused || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("--numa %s: error %v, want one about %s", tc.node, err, tc.part)
		}
	}
}

func TestNodes(t *testing.T) {
	for _, text := range []string{"auto", "off", "0", "1", "1023"} {
		n, err := ParseNode(text)
		if err != nil || n.String() != text || n.HasNumber() != (text != "auto" && text != "off") {
			t.Errorf("%q is read as %q, error %v", text, n, err)
		}
		if auto := (Wish{Node: n}).IsAuto(); auto != (text == "auto") {
			t.Errorf("%q counts as an automatic wish: %t", text, auto)
		}
	}
	for _, text := range []string{"", "-1", "AUTO", "0-1", "1024", "node0"} {
		if n, err := ParseNode(text); err == nil {
			t.Errorf("%q is read as %q", text, n)
		}
	}
	if (Wish{Cores: setOf(0)}).IsAuto() {
		t.Error("a wish for CPUs counts as an automatic one")
	}
}
