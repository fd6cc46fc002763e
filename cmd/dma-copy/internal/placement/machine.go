package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Machine is what a decision depends on.
type Machine struct {
	Sys    fs.FS // what the kernel shows in /sys
	Usable Set   // the CPUs that this process may use at all
}

// noNode is what the kernel, too, says of a device that is on no particular node.
const noNode = -1

// nodes lists the NUMA nodes. A kernel that was built without NUMA shows none.
func (m Machine) nodes() (Set, error) {
	nodes, err := m.readList("devices/system/node/online")
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	return nodes, err
}

// cpusOf lists the CPUs of a node, of which a node may have none.
func (m Machine) cpusOf(node int) (Set, error) {
	return m.readList(fmt.Sprintf("devices/system/node/node%d/cpulist", node))
}

// nodeOf tells on which node a PCI function is, in the long form of its address; noNode if the kernel does not know.
func (m Machine) nodeOf(address string) (int, error) {
	name := path.Join("bus/pci/devices", address, "numa_node")
	text, err := fs.ReadFile(m.Sys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return noNode, nil
	}
	if err != nil {
		return noNode, fmt.Errorf("read the NUMA node of %s: %w", address, err)
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return noNode, fmt.Errorf("/sys/%s contains %q, which is not a number", name, text)
	}
	return max(node, noNode), nil
}

// readList reads a file that holds a list, or nothing but the end of the line.
func (m Machine) readList(name string) (Set, error) {
	text, err := fs.ReadFile(m.Sys, name)
	if err != nil {
		return Set{}, fmt.Errorf("read the machine's NUMA nodes: %w", err)
	}
	list := strings.TrimSpace(string(text))
	if list == "" {
		return Set{}, nil
	}
	found, err := ParseList(list)
	if err != nil {
		return Set{}, fmt.Errorf("/sys/%s contains %q: %w", name, list, err)
	}
	return found, nil
}
