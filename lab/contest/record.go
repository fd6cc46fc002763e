package contest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// Record is the result of a measurement, with all that is needed to repeat it.
type Record struct {
	bench.Record
	Copies    *CopyRecord      `json:"copies,omitempty"`
	Trees     *TreeRecord      `json:"trees,omitempty"`
	Connected *ConnectedRecord `json:"connected,omitempty"`
	Machines  *MachinesRecord  `json:"machines,omitempty"`
}

// CopyRecord is the result of copying files.
type CopyRecord struct {
	CopySetup
	Results []CopyResult `json:"results"`
}

// TreeRecord is the result of copying trees.
type TreeRecord struct {
	CopySetup
	Shapes  []TreeShape  `json:"shapes"`
	Results []TreeResult `json:"results"`
}

// ConnectedRecord is the result of copying over connections to daemons. Commands of its results are those of the
// daemons.
type ConnectedRecord struct {
	CopySetup
	Results []CopyResult    `json:"results"`
	Shapes  []TreeShape     `json:"shapes"`
	Trees   []TreeResult    `json:"trees"`
	Clients []ClientsResult `json:"clients,omitempty"`
}

// MachinesRecord is the result of copying over network connections within this machine. Commands of its results of this
// program are those of the daemons.
type MachinesRecord struct {
	CopySetup
	Results []NetworkResult `json:"results"`
	Shapes  []TreeShape     `json:"shapes"`
	Trees   []TreeResult    `json:"trees"`
}

// CopySetup is what is the same for all copies of a record.
type CopySetup struct {
	Directory  string `json:"directory"`
	FileSystem string `json:"file_system"`
	Durability string `json:"durability"`
	Tools      []Tool `json:"tools"`
}

// TreeShape describes a tree that was copied.
type TreeShape struct {
	Shape       filetree.Shape `json:"tree"`
	Files       int            `json:"files"`
	Directories int            `json:"directories"` // without the root
	Symlinks    int            `json:"symlinks"`
	Bytes       int64          `json:"bytes"` // of all files
}

// CopyResult is the result of one candidate at one size. Direction to Path are set for copies of this program only.
// The fields about time are missing if the candidate failed.
type CopyResult struct {
	Contender     string          `json:"contender"`
	Bytes         int64           `json:"bytes"`
	Daemon        DaemonSide      `json:"daemon,omitempty"` // absent: both sides were processes of this copy alone
	Direction     bench.Direction `json:"direction,omitempty"`
	Chunk         int64           `json:"chunk,omitempty"` // as negotiated
	Depth         int             `json:"depth,omitempty"`
	Digest        string          `json:"digest,omitempty"`
	Path          string          `json:"path,omitempty"` // as asked for: auto, dma, fast, tls, tcp, am or rma
	Commands      [][]string      `json:"commands"`
	MemoryTouched bool            `json:"memory_touched"` // before each run
	Error         string          `json:"error,omitempty"`

	Seconds     *bench.Spread `json:"seconds,omitempty"`            // from the first start to the last end
	CopySeconds *bench.Spread `json:"copy_seconds,omitempty"`       // of the transfer alone, both sides being connected
	Connected   *bench.Spread `json:"met_seconds,omitempty"`        // from the start until both sides were connected
	FirstByte   *bench.Spread `json:"first_byte_seconds,omitempty"` // from the start until the first byte could move
	Rate        float64       `json:"bytes_per_second,omitempty"`   // of the median
	CPUPerGiB   float64       `json:"cpu_seconds_per_gib,omitempty"`
	Ratio       float64       `json:"ratio_to_cp,omitempty"`      // 2: twice as fast as cp; of the medians
	CopyRatio   float64       `json:"copy_ratio_to_cp,omitempty"` // the same for CopySeconds

	LimitRatio     float64 `json:"ratio_to_limit,omitempty"`      // 1: as fast as the limit; of the medians
	LimitCopyRatio float64 `json:"copy_ratio_to_limit,omitempty"` // the same for CopySeconds
}

// NetworkResult is the result of one candidate at one size over a network connection. Direction is push or pull.
type NetworkResult struct {
	CopyResult
	Network   string             `json:"network"`          // "tcp", "shared memory", or "none" for cp
	Encrypted bool               `json:"encrypted"`        // the bytes, not the control connection only
	NoFiles   bool               `json:"no_files"`         // from memory to memory, without source and target
	Ratios    map[string]float64 `json:"ratios,omitempty"` // to other candidates, as CopyResult.Ratio is to cp
}

// TreeResult is the result of one candidate with one tree. Bytes are those of all its files.
type TreeResult struct {
	CopyResult
	Shape          filetree.Shape `json:"tree"`
	Repeated       bool           `json:"repeated"`                      // the target was a copy of the source already
	FilesPerSecond float64        `json:"files_per_second,omitempty"`    // of the median
	CPU            float64        `json:"cpu_seconds,omitempty"`         // of one run, the median
	RsyncRatio     float64        `json:"ratio_to_rsync,omitempty"`      // 2: twice as fast as rsync -a; of the medians
	RsyncCopyRatio float64        `json:"copy_ratio_to_rsync,omitempty"` // the same for CopySeconds
}

// ClientsResult is the result of one candidate that makes many copies of a file by one client or by several at once.
// Chunk and Depth are as asked for, 0 if the program has chosen them.
type ClientsResult struct {
	Clients       int             `json:"clients"`
	Bytes         int64           `json:"bytes"`  // of the file
	Copies        int             `json:"copies"` // of all clients together, in one run
	Daemon        DaemonSide      `json:"daemon"`
	Direction     bench.Direction `json:"direction"`
	Chunk         int64           `json:"chunk,omitempty"`
	Depth         int             `json:"depth,omitempty"`
	Digest        string          `json:"digest"`
	Path          string          `json:"path"`
	Commands      [][]string      `json:"commands"` // the daemon's
	MemoryTouched bool            `json:"memory_touched"`
	Error         string          `json:"error,omitempty"`

	Seconds   *bench.Spread `json:"seconds,omitempty"`          // of all copies
	Rate      float64       `json:"bytes_per_second,omitempty"` // of all clients together, of the median
	CPUPerGiB float64       `json:"cpu_seconds_per_gib,omitempty"`
	Ratio     float64       `json:"ratio_to_one,omitempty"` // 1: the rates of all together are that of one client
	Slowest   float64       `json:"slowest_share"`          // the fewest copies of a client in a run; 1: fair
}

const gibibyte = 1 << 30

// Failed returns how many candidates failed, and how many there were.
func (r *Record) Failed() (failed, all int) {
	for _, each := range r.parts() {
		for _, result := range each.results {
			all++
			if result.err != "" {
				failed++
			}
		}
	}
	return failed, all
}

// part is what all kinds of measurements of a record have.
type part struct {
	name    string // as in the JSON
	results []result
}

// result is what all kinds of results have.
type result struct {
	err     string
	seconds *bench.Spread
	rate    float64 // bytes per second
}

func partOf[R any](name string, results []R, of func(R) result) part {
	p := part{name: name}
	for _, each := range results {
		p.results = append(p.results, of(each))
	}
	return p
}

func (r CopyResult) result() result { return result{r.Error, r.Seconds, r.Rate} }

// parts returns what was measured.
func (r *Record) parts() (all []part) {
	ofTree := func(r TreeResult) result { return r.result() }
	if c := r.Copies; c != nil {
		all = append(all, partOf("copies", c.Results, CopyResult.result))
	}
	if t := r.Trees; t != nil {
		all = append(all, partOf("trees", t.Results, ofTree))
	}
	if c := r.Connected; c != nil {
		ofClients := func(r ClientsResult) result { return result{r.Error, r.Seconds, r.Rate} }
		all = append(all, partOf("connected", c.Results, CopyResult.result), partOf("connected.trees", c.Trees, ofTree),
			partOf("connected.clients", c.Clients, ofClients))
	}
	if m := r.Machines; m != nil {
		ofNetwork := func(r NetworkResult) result { return r.result() }
		all = append(all, partOf("machines", m.Results, ofNetwork), partOf("machines.trees", m.Trees, ofTree))
	}
	if e := r.Engine; e != nil {
		ofEngine := func(r bench.EngineResult) result { return result{r.Error, r.Seconds, r.Rate} }
		all = append(all, partOf("engine", e.Results, ofEngine))
	}
	return all
}

// The rates that tables and drawings can show, in bytes per second.
const (
	minRate = 1e-6
	maxRate = 1e18
)

// check returns an error for a record that was not written by a measurement, or was changed.
func (r *Record) check() error {
	if _, all := r.Failed(); all == 0 {
		return errors.New("it has no results")
	}
	for _, part := range r.parts() {
		for i, result := range part.results {
			switch {
			case result.err != "":
			case result.seconds == nil:
				return fmt.Errorf("result %d of %s has neither seconds nor an error", i+1, part.name)
			case result.rate != 0 && (result.rate < minRate || result.rate > maxRate):
				return fmt.Errorf("result %d of %s has a rate of %g bytes per second", i+1, part.name, result.rate)
			}
		}
	}
	return nil
}

// ParseRecord reads the JSON of this version, or of a later one that has added fields.
func ParseRecord(text []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.Version != bench.RecordVersion {
		return nil, fmt.Errorf("unsupported version %d, only %d is known", r.Version, bench.RecordVersion)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &r, nil
}
