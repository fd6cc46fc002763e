package bench

// RecordVersion is the version of the JSON format. It changes only if a field is removed or gets another meaning.
const RecordVersion = 1

// Record is the result of a measurement, with all that is needed to repeat it.
type Record struct {
	Version int           `json:"v"`
	Date    string        `json:"date"` // RFC 3339, in UTC, of the start
	Command []string      `json:"command"`
	Program string        `json:"program"`
	Go      string        `json:"go"`
	Runs    int           `json:"runs"` // per candidate, without warm-up
	Warmup  int           `json:"warmup"`
	Machine Machine       `json:"machine"`
	Device  *Device       `json:"device,omitempty"` // absent: none was used
	Engine  *EngineRecord `json:"engine,omitempty"`
}

// Device is what copied the bytes.
type Device struct {
	Driver   string `json:"driver"`
	Version  string `json:"version"`
	Hardware bool   `json:"hardware"`
	Limits   string `json:"limits,omitempty"` // of the software device, if they were set
	Moves    bool   `json:"moves_bytes"`      // false: tasks complete without copying
	Model    string `json:"model,omitempty"`  // time model, as the driver describes it; absent: none
}

// EngineRecord is the result of the engine alone.
type EngineRecord struct {
	Bytes   int64          `json:"bytes"` // per run, rounded up to whole tasks
	Results []EngineResult `json:"results"`
}

// EngineResult is the result of one task size at one depth in one direction.
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
