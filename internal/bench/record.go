package bench

import (
	"encoding/json"
	"fmt"
)

// recordVersion is that of the form. It changes only if a field is taken away or gets another meaning; docs/bench.schema.json has them all.
const recordVersion = 1

// Record is what was measured, with all that one has to know to measure it again.
type Record struct {
	Version int           `json:"v"`
	Date    string        `json:"date"` // RFC 3339, in UTC, of the beginning
	Command []string      `json:"command"`
	Program string        `json:"program"`
	Go      string        `json:"go"`
	Runs    int           `json:"runs"` // of each candidate that count
	Warmup  int           `json:"warmup"`
	Machine Machine       `json:"machine"`
	Device  Device        `json:"device"`
	Copies  *CopyRecord   `json:"copies,omitempty"`
	Engine  *EngineRecord `json:"engine,omitempty"`
}

// Device is what moved the bytes.
type Device struct {
	Driver   string `json:"driver"`
	Version  string `json:"version"`
	Hardware bool   `json:"hardware"`
	Limits   string `json:"limits,omitempty"` // of the software device, where they are not its own
	Moves    bool   `json:"moves_bytes"`      // false: only time passes
	Model    string `json:"model,omitempty"`  // of time, as the driver describes it; not there: as fast as this machine is
}

// CopyRecord is about files.
type CopyRecord struct {
	Directory  string       `json:"directory"`
	FileSystem string       `json:"file_system"`
	Durability string       `json:"durability"`
	Tools      []Tool       `json:"tools"`
	Results    []CopyResult `json:"results"`
}

// CopyResult is one candidate's at one size. Direction to Digest are of this program's copies only, and what is about times is missing if the
// candidate failed.
type CopyResult struct {
	Contender     string     `json:"contender"`
	Bytes         int64      `json:"bytes"`
	Direction     Direction  `json:"direction,omitempty"`
	Chunk         int64      `json:"chunk,omitempty"` // that both sides agreed on
	Depth         int        `json:"depth,omitempty"`
	Digest        string     `json:"digest,omitempty"`
	Commands      [][]string `json:"commands"`
	MemoryTouched bool       `json:"memory_touched"` // before each run
	Error         string     `json:"error,omitempty"`

	Seconds     *Spread `json:"seconds,omitempty"`            // from the start of the first process to the end of the last
	CopySeconds *Spread `json:"copy_seconds,omitempty"`       // of the copy itself, both sides being connected
	Connected   *Spread `json:"met_seconds,omitempty"`        // from the start until both sides had met
	FirstByte   *Spread `json:"first_byte_seconds,omitempty"` // from the start until the first byte could move
	Rate        float64 `json:"bytes_per_second,omitempty"`   // of the median
	CPUPerGiB   float64 `json:"cpu_seconds_per_gib,omitempty"`
	Ratio       float64 `json:"ratio_to_cp,omitempty"`      // 2: twice as fast as cp; of the medians
	CopyRatio   float64 `json:"copy_ratio_to_cp,omitempty"` // the same for the copy itself
}

// EngineRecord is about memory.
type EngineRecord struct {
	Bytes   int64          `json:"bytes"` // of a run, rounded up to whole tasks
	Results []EngineResult `json:"results"`
}

// EngineResult is one task size at one depth in one direction.
type EngineResult struct {
	Direction Direction `json:"direction"`
	Chunk     int64     `json:"chunk"` // bytes of a task
	Depth     int       `json:"depth"` // tasks in flight
	Error     string    `json:"error,omitempty"`

	Seconds        *Spread `json:"seconds,omitempty"`
	Rate           float64 `json:"bytes_per_second,omitempty"` // of the median
	TasksPerSecond float64 `json:"tasks_per_second,omitempty"`
	CPUPerGiB      float64 `json:"cpu_seconds_per_gib,omitempty"`
}

const gibibyte = 1 << 30

// Failed counts the candidates that failed, and all.
func (r *Record) Failed() (failed, all int) {
	if r.Copies != nil {
		for _, result := range r.Copies.Results {
			all, failed = all+1, failed+countIf(result.Error != "")
		}
	}
	if r.Engine != nil {
		for _, result := range r.Engine.Results {
			all, failed = all+1, failed+countIf(result.Error != "")
		}
	}
	return failed, all
}

func countIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ParseRecord reads what was written as JSON, by this version or a later one that has added to it.
func ParseRecord(text []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("unsupported version %d, only %d is known", r.Version, recordVersion)
	}
	return &r, nil
}
