package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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

const tasks = "/proc/self/task" // a folder for each thread of this process

// ThisMachine returns this machine, with the CPUs that the process may use now: the thread's mask reflects containers,
// cpusets and taskset.
func ThisMachine() (Machine, error) {
	m := Machine{Sys: os.DirFS("/sys")}
	if err := unix.SchedGetaffinity(os.Getpid(), &m.Usable.CPUSet); err != nil {
		return Machine{}, fmt.Errorf("ask which CPUs this process may use: %w", err)
	}
	return m, nil
}

// runOn moves every thread of the process to the CPUs, and with them those that they will start. Existing memory stays
// where it is. After an error, some threads may have moved. Not safe for concurrent use.
func runOn(cpus Set) error {
	moved := map[int]bool{}
	for {
		fresh, err := moveThreads(&cpus.CPUSet, moved)
		if err != nil || fresh == 0 {
			return err
		}
	}
}

// moveThreads moves the threads that have not been moved yet and returns their number. Meanwhile, a thread that has
// not been moved may start another one.
func moveThreads(cpus *unix.CPUSet, moved map[int]bool) (fresh int, err error) {
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, fmt.Errorf("list the threads of this process: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil || moved[id] {
			continue
		}
		// It may have ended.
		if err := unix.SchedSetaffinity(id, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
			return fresh, fmt.Errorf("move a thread of this process to other CPUs: %w", err)
		}
		moved[id], fresh = true, fresh+1
	}
	return fresh, nil
}
