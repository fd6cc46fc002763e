package placement

import (
	"errors"
	"strconv"
)

// Wish is where the user wants the process to run. The zero Wish is automatic: near the device, if that makes a
// difference.
type Wish struct {
	Cores Set  // on these CPUs; empty: not given
	Node  Node // else on those of this NUMA node
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
	NodeAuto = "auto" // that of the device
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
