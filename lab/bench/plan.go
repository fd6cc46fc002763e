package bench

import "github.com/dma-copy/dma-copy/internal/doca"

// Direction is the direction of a copy.
type Direction string

// The directions. In both, the DPU's engine copies: it reads the host's memory, or writes to it.
const (
	HostToDPU Direction = "host-to-dpu"
	DPUToHost Direction = "dpu-to-host"
)

// Plan is what the engine copies: each task size at each depth in each direction.
type Plan struct {
	Bytes      int64 // per run
	Chunks     []int64
	Depths     []int
	Directions []Direction
	Settings
}

// Settings are those of every measurement.
type Settings struct {
	Driver doca.Options // ChooseAuto means the software device, because both sides must be on this machine
	Model  string       // time model of the software device; empty: none
	Runs   int          // rounds that count, at least one
	Warmup int          // rounds before them, which do not count

	Software string   // name and version of the program, for the record
	Command  []string // the command line, for the record

	Tell func(string) // called with what is measured next and what is skipped; not nil
}

// LimitsVariable is the variable by which processes of this program get limits of the software device.
const LimitsVariable = "DMA_COPY_SOFT_LIMITS"

// Limits returns the limits of the software device: first the model, so that those in the environment can change single
// values of it.
func (s Settings) Limits(environment string) string {
	switch {
	case s.Model == "":
		return environment
	case environment == "":
		return "model=" + s.Model
	}
	return "model=" + s.Model + "," + environment
}

// Rounds returns how often every candidate runs.
func (s Settings) Rounds() Rounds { return Rounds{Warmup: s.Warmup, Counted: s.Runs} }
