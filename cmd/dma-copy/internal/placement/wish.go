package placement

import (
	"errors"
	"strconv"
)

// Wish is where somebody wants the process to run. The zero Wish is nobody's: near the device, if that is of any use.
type Wish struct {
	Cores Set  // on these CPUs; empty: not given
	Node  Node // else on those of this NUMA node
}

// IsAuto tells whether nothing in particular was wished for, so that nothing is refused either.
func (w Wish) IsAuto() bool { return w.Cores.Empty() && w.Node == Node{} }

// Node names a NUMA node: that of the device (the zero Node), none, or one by its number.
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

// ParseNode reads "auto", "off" or the number of a node. Its error says what to give instead.
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

// HasNumber tells whether the node was named by its number.
func (n Node) HasNumber() bool { return n.choice == nodeNumbered }
