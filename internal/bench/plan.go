package bench

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/filetree"
)

// Direction is the direction of a copy.
type Direction string

// The directions of copies over a network connection, as its client sees them.
const (
	Push Direction = "push"
	Pull Direction = "pull"
)

// The directions. In both, the DPU's engine copies: it reads the host's memory, or writes to it.
const (
	HostToDPU Direction = "host-to-dpu"
	DPUToHost Direction = "dpu-to-host"
)

// Plan is what to measure. Every list but Tools has at least one entry. A chunk or depth of 0 leaves the choice to the
// program.
type Plan struct {
	Copies *CopyPlan   // nil: no copies of files
	Trees  *TreePlan   // nil: no copies of trees
	Engine *EnginePlan // nil: no measurement of the engine alone

	Connected *ConnectedPlan // nil: no copies over connections that stay
	Machines  *MachinesPlan  // nil: no copies over network connections; otherwise nothing else is measured

	Driver doca.Options // ChooseAuto means the software device, because both sides must be on this machine
	Model  string       // time model of the software device; empty: none
	Runs   int          // rounds that count, at least one
	Warmup int          // rounds before them, which do not count

	Program  string   // path of the executable for the two sides of a copy
	Software string   // its name and version, for the record
	Command  []string // the command line, for the record

	Tell func(string) // called with what is measured next and what is skipped; not nil
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
	Clients   int              // at once; 0: not measured
	Placement native.Placement // of the lanes of this process; nil: none
	CopySettings
}

// MachinesPlan is what to copy over network connections within this machine: files, and the tree filetree.Small.
// Directions are Push and Pull; a path is tls, tcp, am or rma.
type MachinesPlan struct {
	Sizes     []int64 // bytes
	Files     int     // of the tree; 0: as many as it has by itself
	Placement native.Placement
	CopySettings
}

// CopySettings is how to copy: in each direction with each chunk, depth, digest and data path.
type CopySettings struct {
	Chunks     []int64 // bytes
	Depths     []int
	Directions []Direction
	Digests    []string
	Paths      []string // auto, dma or fast
	Durability string   // none, file or full
	Directory  string   // for source and target; empty: a temporary directory
	Tools      []string // some of ToolNames; those that cannot copy what is copied are left out
}

// NetworkPaths are the data paths of network connections.
var NetworkPaths = []string{"tls", "tcp", "am", "rma"}

// EnginePlan is what the engine copies: each task size at each depth in each direction.
type EnginePlan struct {
	Bytes      int64 // per run
	Chunks     []int64
	Depths     []int
	Directions []Direction
}

// Settings of the software device that its processes read from the environment.
const (
	limitsVariable = "DMA_COPY_SOFT_LIMITS"
	dirVariable    = "DMA_COPY_SOFT_DIR"
)

// limits returns the limits of the software device: first the model, so that those in the environment can change single
// values of it.
func (p Plan) limits(environment string) string {
	switch {
	case p.Model == "":
		return environment
	case environment == "":
		return "model=" + p.Model
	}
	return "model=" + p.Model + "," + environment
}
