package bench

import (
	"github.com/dma-copy/dma-copy/internal/doca"
)

// Direction is which way the bytes go.
type Direction string

// The directions. In both the DPU's engine copies: it reads the host's memory, or writes to it.
const (
	HostToDPU Direction = "host-to-dpu"
	DPUToHost Direction = "dpu-to-host"
)

// Plan is what to measure. Every list has at least one entry but Tools; a chunk or depth of 0 is the program's choice.
type Plan struct {
	Copies *CopyPlan   // nil: no copies
	Engine *EnginePlan // nil: not the engine alone

	Driver doca.Options // ChooseAuto is the software device, because both sides must be on this machine
	Model  string       // of the software device's time; empty: none
	Runs   int          // that count, at least one
	Warmup int          // rounds before them

	Program  string   // path of the executable, for the two sides of a copy
	Software string   // its name and version, for the record
	Command  []string // the command line that this is, for the record

	Tell func(string) // hears what is measured next, and what is not; never nil
}

// CopyPlan is what to copy, and how: each size in each direction with each chunk, depth and digest.
type CopyPlan struct {
	Sizes      []int64 // bytes
	Chunks     []int64 // bytes
	Depths     []int
	Directions []Direction
	Digests    []string
	Durability string   // none, file or full
	Directory  string   // where source and target are; empty: a temporary one
	Tools      []string // of ToolNames
}

// EnginePlan is what the engine copies: each task size at each depth in each direction.
type EnginePlan struct {
	Bytes      int64 // of a run
	Chunks     []int64
	Depths     []int
	Directions []Direction
}

// The settings of the software device that its processes read from the environment.
const (
	limitsVariable = "DMA_COPY_SOFT_LIMITS"
	dirVariable    = "DMA_COPY_SOFT_DIR"
)

// limits are those of the software device: the model's first, so that single ones from the environment can be other than the model's.
func (p Plan) limits(environment string) string {
	switch {
	case p.Model == "":
		return environment
	case environment == "":
		return "model=" + p.Model
	}
	return "model=" + p.Model + "," + environment
}
