package contest

import (
	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// The directions of copies over a network connection, as its client sees them.
const (
	Push bench.Direction = "push"
	Pull bench.Direction = "pull"
)

// Plan is what to measure. Every list but Tools has at least one entry. A chunk or depth of 0 leaves the choice to the
// program.
type Plan struct {
	Copies *CopyPlan // nil: no copies of files
	Trees  *TreePlan // nil: no copies of trees

	Connected *ConnectedPlan // nil: no copies over connections that stay
	Machines  *MachinesPlan  // nil: no copies over network connections; otherwise nothing else is measured

	bench.Settings
	Program string // path of the executable for the two sides of a copy
}

// CopyPlan is which files to copy, and how.
type CopyPlan struct {
	Sizes []int64 // bytes
	CopySettings
}

// TreePlan is which trees to copy, and how.
type TreePlan struct {
	Shapes []filetree.Shape
	Files  int // of each tree; 0: as many as its shape has by itself
	CopySettings
}

// ConnectedPlan is what to copy over connections to daemons: files, the tree filetree.Small, and the smallest of the
// files by several clients at once.
type ConnectedPlan struct {
	Sizes     []int64 // bytes
	Files     int     // of the tree; 0: as many as it has by itself
	Daemons   []DaemonSide
	Clients   int            // at once; 0: not measured
	Placement role.Placement // of the lanes of this process; nil: none
	CopySettings
}

// MachinesPlan is what to copy over network connections within this machine: files, and the tree filetree.Small.
// Directions are Push and Pull; a path is tls, tcp, am or rma.
type MachinesPlan struct {
	Sizes     []int64 // bytes
	Files     int     // of the tree; 0: as many as it has by itself
	Placement role.Placement
	CopySettings
}

// CopySettings is how to copy: in each direction with each chunk, depth, digest and data path.
type CopySettings struct {
	Chunks     []int64 // bytes
	Depths     []int
	Directions []bench.Direction
	Digests    []string
	Paths      []string // auto, dma or fast
	Durability string   // none, file or full
	Directory  string   // for source and target; empty: a temporary directory
	Tools      []string // some of ToolNames; those that cannot copy what is copied are left out
}

// NetworkPaths are the data paths of network connections.
var NetworkPaths = []string{"tls", "tcp", "am", "rma"}

// dirVariable is the variable by which processes of the program get the directory of the software device.
const dirVariable = "DMA_COPY_SOFT_DIR"
