package contest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// variant is one combination of settings for a copy with this program.
type variant struct {
	direction  bench.Direction
	chunk      int64
	depth      int
	digest     string
	path       string
	durability string
}

// pairCopy is the candidate for this program: a process for each side.
type pairCopy struct {
	task
	host, dpu child

	chunk int64 // as negotiated
	depth int
}

// pairConfig is what the processes of both sides have in common.
type pairConfig struct {
	folder      string // for what they need
	runtime     string // directory of the software device
	program     string
	driver      []string // the flags that select it
	sides       bench.Sides
	environment []string
}

// newPairConfig creates a runtime directory and an empty configuration in folder, so that the defaults of this machine
// have no effect.
func (p Plan) newPairConfig(folder string, names bench.Sides) (*pairConfig, error) {
	runtime := disk.Join(folder, "run")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		return nil, err
	}
	config := disk.Join(folder, "config.json")
	if err := os.WriteFile(config, []byte("{}\n"), 0o600); err != nil {
		return nil, err
	}
	environment := withoutProgramVariables(os.Environ())
	environment = append(environment, dirVariable+"="+runtime, "DMA_COPY_CONFIG="+config)
	if limits := p.Limits(os.Getenv(bench.LimitsVariable)); limits != "" {
		environment = append(environment, bench.LimitsVariable+"="+limits)
	}
	return &pairConfig{
		folder: folder, runtime: runtime, program: p.Program, driver: driverFlags(p.Driver),
		sides:       names,
		environment: environment,
	}, nil
}

// withoutProgramVariables removes the variables that a copy reads as flags, and those that are set anew. The faults and
// quirks of the software device stay.
func withoutProgramVariables(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		ours := strings.HasPrefix(entry, "DMA_COPY_")
		device := strings.HasPrefix(entry, "DMA_COPY_SOFT_QUIRKS=") || strings.HasPrefix(entry, "DMA_COPY_SOFT_FAULTS=")
		if !ours || device {
			kept = append(kept, entry)
		}
	}
	return kept
}

// newPairCopy returns the candidate that copies the source to a target. The receiver gets more flags.
func (m *pairConfig) newPairCopy(t task, v variant, source, target string, receiverFlags ...string) *pairCopy {
	host, dpu := []string{"-f", source}, append([]string{"-f", target}, receiverFlags...)
	if v.direction == bench.DPUToHost {
		host, dpu = dpu, host
	}
	return &pairCopy{
		task: t,
		host: m.child(v, append([]string{"-p", m.sides.Host}, host...)),
		dpu:  m.child(v, append([]string{"-p", m.sides.DPU, "-r", m.sides.Representor}, dpu...)),
	}
}

func (m *pairConfig) child(v variant, side []string) child {
	argv := append([]string{"dma-copy"}, side...)
	argv = append(argv, m.driver...)
	argv = append(argv, "-o", "json", "--progress", "never", "--digest", v.digest, "--durability", v.durability)
	if v.path != "" {
		argv = append(argv, "--path", v.path)
	}
	if v.chunk > 0 {
		argv = append(argv, "--chunk", strconv.FormatInt(v.chunk, 10))
	}
	if v.depth > 0 {
		argv = append(argv, "--depth", strconv.Itoa(v.depth))
	}
	return child{path: m.program, argv: argv, environment: m.environment, stdout: new(bytes.Buffer)}
}

// The DPU is started first, because it is the server of the connection.
func (c *pairCopy) stages() [][]child { return [][]child{{c.dpu, c.host}} }

func (c *pairCopy) commands() [][]string { return commandsOf(c.stages()) }

func (c *pairCopy) negotiated() (chunk int64, depth int) { return c.chunk, c.depth }

func (c *pairCopy) Run(ctx context.Context) (bench.Run, error) {
	run, began, err := runStages(ctx, c.stages())
	if err != nil {
		return run, err
	}
	for _, side := range []child{c.host, c.dpu} {
		report, err := readEvents(side.stdout)
		if err != nil {
			return run, err
		}
		run.Copy = max(run.Copy, report.elapsed)
		run.Connected = max(run.Connected, report.connected.Sub(began).Seconds())
		run.FirstByte = max(run.FirstByte, report.planned.Sub(began).Seconds())
		c.chunk, c.depth = report.chunk, report.depth
	}
	return run, nil
}

// sideReport is what the events of one side say about its copy.
type sideReport struct {
	connected, planned time.Time
	elapsed            float64 // seconds
	chunk              int64
	depth              int
}

// event has those fields of docs/events.schema.json that are used here.
type event struct {
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Elapsed float64   `json:"elapsed_seconds"`
	Chunk   int64     `json:"chunk"`
	Depth   int       `json:"depth"`
}

func readEvents(lines *bytes.Buffer) (sideReport, error) {
	var t sideReport
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var e event
		if err := decoder.Decode(&e); err != nil {
			return t, err
		}
		switch e.Type {
		case "hello":
			t.connected = e.Time
		case "plan":
			t.planned = e.Time
		case "summary":
			t.elapsed, t.chunk, t.depth = e.Elapsed, e.Chunk, e.Depth
		}
	}
	if t.elapsed == 0 || t.connected.IsZero() || t.planned.IsZero() {
		return t, errors.New("a side that succeeded did not report its copy")
	}
	return t, nil
}
