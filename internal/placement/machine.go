package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Machine is the input of a decision.
type Machine struct {
	Sys    fs.FS // what the kernel shows in /sys
	Usable Set   // the CPUs that this process may use at all
}

// noNode stands for no particular node, in the kernel, too.
const noNode = -1

// nodes returns the NUMA nodes; a kernel without NUMA shows none.
func (m Machine) nodes() (Set, error) {
	nodes, err := m.readList("devices/system/node/online")
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	return nodes, err
}

// cpusOf returns the CPUs of a node; a node may have none.
func (m Machine) cpusOf(node int) (Set, error) {
	return m.readList(fmt.Sprintf("devices/system/node/node%d/cpulist", node))
}

// nodeOf returns the NUMA node of a PCI function by the long form of its address, noNode if the kernel does not know
// it.
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

// readList reads a file with a list, which may be empty.
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
