// Package placement decides on which CPUs of the machine the process runs, moves it there and sets GOMAXPROCS.
//
// A device is attached to one NUMA node: access to that node's memory is fastest for it, and completions are handled
// fastest by the node's CPUs. Memory needs no call of its own: the kernel takes a page from the node of the CPU that
// touches it first, so a process that has moved before it allocates has both.
//
// Decisions are pure: the kernel's /sys arrives as an fs.FS, so that tests build machines of any shape. Only apply.go,
// machine.go and lanes.go change the process, and no other package may change its CPUs or GOMAXPROCS. This package does
// not know what the lanes and the process do with their CPUs, and reads no setting but the Wish that it is given.
package placement

import (
	"errors"
	"strconv"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// Decision is where the process is to run, and why.
type Decision struct {
	CPUs Set // to run on, all of them usable; empty: the process stays where it is
	// Node is the NUMA node that decided, -1 if none did. With CPUs empty, it is the node of the device, where this
	// process may use no CPU.
	Node int
}

// HasNode reports whether a NUMA node decided.
func (d Decision) HasNode() bool { return d.Node != noNode }

// decide returns the CPUs for a wish. The device is the PCI address of hardware in its long form, "0000:b1:00.1", or
// empty for the software device. A wish for particular CPUs, or for a node by its number, that leaves no usable CPU is
// an error of the user, which the zero Wish never is. Other errors are errors of reading Sys.
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

// Wish is where the user wants the process to run. The zero Wish is automatic: near the device, if that makes a
// difference.
type Wish struct {
	Cores Set  // on these CPUs; empty: not given
	Node  Node // else on the CPUs of this NUMA node
}

// IsAuto reports whether nothing particular was wished for, so that nothing is refused either.
func (w Wish) IsAuto() bool { return w.Cores.Empty() && w.Node == Node{} }

// Node is the NUMA node of the device (the zero Node), no node, or a node by its number.
type Node struct {
	choice nodeChoice
	number int // of nodeNumbered, else 0
}

type nodeChoice int

const (
	nodeOfDevice nodeChoice = iota
	nodeOff
	nodeNumbered
)

// The words for a Node without a number.
const (
	NodeAuto = "auto" // the node of the device
	NodeOff  = "off"  // none: the process stays where it is
)

// ParseNode parses "auto", "off" or the number of a node. Its error says what to give instead.
func ParseNode(text string) (Node, error) {
	switch text {
	case NodeAuto:
		return Node{}, nil
	case NodeOff:
		return Node{choice: nodeOff}, nil
	}
	number, err := parseNumber(text)
	if err != nil {
		return Node{}, errors.New("not a NUMA node; give auto, off or the number of one, such as 0")
	}
	return Node{choice: nodeNumbered, number: number}, nil
}

// String spells the node as ParseNode reads it.
func (n Node) String() string {
	return [...]string{NodeAuto, NodeOff, strconv.Itoa(n.number)}[n.choice]
}

// HasNumber reports whether the node was given by its number.
func (n Node) HasNumber() bool { return n.choice == nodeNumbered }
