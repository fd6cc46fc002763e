package placement

import "fmt"

// Decision is where the process is to run, and why.
type Decision struct {
	CPUs Set // to run on, all of them usable; empty: the process stays where it is
	// Node is the NUMA node that decided, -1 if none did. With CPUs empty, it is the node of the device, of which this
	// process may use no CPU.
	Node int
}

// HasNode reports whether a NUMA node decided.
func (d Decision) HasNode() bool { return d.Node != noNode }

// refusal is the error of a wish that cannot be fulfilled on this machine. It says why, and what to choose instead.
type refusal string

// Error returns the message without its subject, the wish.
func (r refusal) Error() string { return string(r) }

// decide returns the CPUs for a wish. The device is the PCI address of hardware in its long form, "0000:b1:00.1", or
// empty for the software device. A wish for particular CPUs, or for a node by its number, that leaves no usable CPU is
// a refusal; the zero Wish never is. Other errors are those of reading Sys.
func (m Machine) decide(w Wish, device string) (Decision, error) {
	switch {
	case !w.Cores.Empty():
		return m.decideByCores(w.Cores)
	case w.Node.HasNumber():
		return m.decideByNode(w.Node.number)
	case w.Node.choice == nodeOff || device == "":
		return Decision{Node: noNode}, nil
	default:
		return m.decideByDevice(device)
	}
}

func (m Machine) decideByCores(cores Set) (Decision, error) {
	cpus := cores.Intersect(m.Usable)
	if cpus.Empty() {
		return Decision{}, refuse("this process may use none of these CPUs: choose from %s", m.Usable)
	}
	return Decision{CPUs: cpus, Node: noNode}, nil
}

func (m Machine) decideByNode(node int) (Decision, error) {
	nodes, err := m.nodes()
	switch {
	case err != nil:
		return Decision{}, err
	case nodes.Empty():
		return Decision{}, refuse("the kernel shows no NUMA nodes here: leave it out, or name CPUs with --cores")
	case !nodes.IsSet(node):
		return Decision{}, refuse("this machine has no such NUMA node: choose from %s", nodes)
	}
	all, err := m.cpusOf(node)
	if err != nil {
		return Decision{}, err
	}
	cpus := all.Intersect(m.Usable)
	if cpus.Empty() {
		return Decision{}, m.refuseNode(all)
	}
	return Decision{CPUs: cpus, Node: node}, nil
}

func (m Machine) refuseNode(cpus Set) error {
	if cpus.Empty() {
		return refuse("this NUMA node has memory only, and no CPU: choose another one")
	}
	return refuse(
		"this process may use %s and none of that node's CPUs, %s: "+
			"choose another node, or allow it those (cpuset, taskset)",
		m.Usable, cpus)
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

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
