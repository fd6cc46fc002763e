package placement

import "github.com/dma-copy/dma-copy/internal/exit"

// Decision is where the process is to run, and why.
type Decision struct {
	CPUs Set // to run on, all of them usable; empty: the process stays where it is
	// Node is the NUMA node that decided, -1 if none did. With CPUs empty, it is the node of the device, of which this
	// process may use no CPU.
	Node int
}

// HasNode reports whether a NUMA node decided.
func (d Decision) HasNode() bool { return d.Node != noNode }

// decide returns the CPUs for a wish. The device is the PCI address of hardware in its long form, "0000:b1:00.1", or
// empty for the software device. A wish for particular CPUs, or for a node by its number, that leaves no usable CPU is
// an error of the user, which the zero Wish never is. Other errors are those of reading Sys.
func (m Machine) decide(w Wish, device string) (Decision, error) {
	switch {
	case !w.Cores.Empty():
		return m.decideByCores(w)
	case w.Node.HasNumber():
		return m.decideByNode(w)
	case w.Node.choice == nodeOff || device == "":
		return Decision{Node: noNode}, nil
	default:
		return m.decideByDevice(device)
	}
}

func (m Machine) decideByCores(w Wish) (Decision, error) {
	cpus := w.Cores.Intersect(m.Usable)
	if cpus.Empty() {
		return Decision{}, w.refused("this process may use none of these CPUs: choose from %s", m.Usable)
	}
	return Decision{CPUs: cpus, Node: noNode}, nil
}

func (m Machine) decideByNode(w Wish) (Decision, error) {
	node := w.Node.number
	nodes, err := m.nodes()
	switch {
	case err != nil:
		return Decision{}, err
	case nodes.Empty():
		return Decision{}, w.refused("the kernel shows no NUMA nodes here: leave it out, or name CPUs with --cores")
	case !nodes.IsSet(node):
		return Decision{}, w.refused("this machine has no such NUMA node: choose from %s", nodes)
	}
	all, err := m.cpusOf(node)
	if err != nil {
		return Decision{}, err
	}
	cpus := all.Intersect(m.Usable)
	switch {
	case all.Empty():
		return Decision{}, w.refused("this NUMA node has memory only, and no CPU: choose another one")
	case cpus.Empty():
		return Decision{}, w.refused("this process may use %s and none of that node's CPUs, %s: "+
			"choose another node, or allow it those (cpuset, taskset)", m.Usable, all)
	}
	return Decision{CPUs: cpus, Node: node}, nil
}

// decideByDevice leaves the process where it is if all CPUs are equally near.
func (m Machine) decideByDevice(device string) (Decision, error) {
	nodes, err := m.nodes()
	if err != nil || nodes.Count() < 2 {
		return Decision{Node: noNode}, err
	}
	node, err := m.nodeOf(device)
	if err != nil || node == noNode {
		return Decision{Node: noNode}, err
	}
	cpus, err := m.cpusOf(node)
	return Decision{CPUs: cpus.Intersect(m.Usable), Node: node}, err
}

// refused returns the error of a wish that cannot be fulfilled on this machine: why, and what to choose instead.
func (w Wish) refused(format string, args ...any) error {
	return exit.Usagef(w.Flag()+": "+format, args...)
}
