package contest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/lab/bench"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func spreadAt(seconds float64) *bench.Spread {
	return &bench.Spread{
		P25: seconds * 0.95, P50: seconds, P75: seconds * 1.1, P99: seconds * 1.196, Min: seconds * 0.9,
		Max: seconds * 1.2, Runs: []float64{seconds, seconds * 0.9, seconds * 1.2},
	}
}

var sampleSetup = CopySetup{
	Directory: "/tmp", FileSystem: "ext4", Durability: "full", Tools: []Tool{{toolCp, "cp 9.1"}, {toolRsync, ""}},
}

// sampleTrees returns a record of trees with every field, including a failure.
func sampleTrees() *TreeRecord {
	result := func(contender string, repeated bool, seconds float64) TreeResult {
		return TreeResult{
			CopyResult: CopyResult{Contender: contender, Bytes: 40_960_000, Seconds: spreadAt(seconds)},
			Shape:      filetree.Small, Repeated: repeated, FilesPerSecond: 10_000 / seconds, CPU: seconds,
		}
	}
	ours := func(direction bench.Direction, repeated bool, seconds float64) TreeResult {
		r := result(programName, repeated, seconds)
		r.Direction, r.CopySeconds, r.FirstByte = direction, spreadAt(seconds/2), spreadAt(0.01)
		return r
	}
	trees := &TreeRecord{
		CopySetup: sampleSetup,
		Shapes: []TreeShape{
			{Shape: filetree.Small, Files: 10_000, Directories: 100, Symlinks: 1, Bytes: 40_960_000},
		},
		Results: []TreeResult{
			result(toolCp, false, 0.2), result(toolRsync, false, 0.4), result(toolRsync, true, 0.08),
			result(toolTar, false, 0.25),
			ours(bench.HostToDPU, false, 0.1), ours(bench.HostToDPU, true, 0.04), ours(bench.DPUToHost, false, 0.2),
			{
				CopyResult: CopyResult{Contender: programName, Direction: bench.DPUToHost, Error: "a | b\nc"},
				Shape:      filetree.Small, Repeated: true,
			},
		},
	}
	setTreeRatios(trees.Results)
	return trees
}

// sampleConnected returns a record with every field, including failures.
func sampleConnected() *ConnectedRecord {
	ours := CopyResult{
		Contender: programName, Bytes: 2 << 20, Daemon: DaemonOnHost, Direction: bench.HostToDPU,
		Seconds:     spreadAt(0.0025),
		CopySeconds: spreadAt(0.002), Rate: 8e8, CPUPerGiB: 2,
	}
	failed := ours
	failed.Daemon, failed.Seconds, failed.CopySeconds, failed.Error = DaemonOnDPU, nil, nil, "lost"
	files := []CopyResult{
		{Contender: toolCp, Bytes: 2 << 20, Seconds: spreadAt(0.002), Rate: 1e9},
		{Contender: toolLimit, Bytes: 2 << 20, Seconds: spreadAt(0.0015), Rate: 1.4e9}, ours, failed,
	}
	setRatios(files)
	clients := func(count int, seconds, slowest float64) ClientsResult {
		return ClientsResult{
			Clients: count, Bytes: 2 << 20, Copies: 160, Daemon: DaemonOnDPU, Direction: bench.DPUToHost,
			Digest:  "crc32c",
			Seconds: spreadAt(seconds), Rate: 160 * (2 << 20) / seconds, CPUPerGiB: 3, Slowest: slowest,
		}
	}
	lost := clients(16, 1, 0)
	lost.Seconds, lost.Digest, lost.Error = nil, "none", "client 3: lost"
	several := []ClientsResult{clients(1, 0.4, 1), clients(16, 0.5, 0.7), lost}
	setClientRatios(several)
	tree := sampleTrees()
	first := tree.Results[4]
	first.Daemon = DaemonOnDPU
	return &ConnectedRecord{
		CopySetup: sampleSetup, Results: files, Shapes: tree.Shapes, Trees: []TreeResult{first}, Clients: several,
	}
}

// sampleMachines returns a record with every field, including failures.
func sampleMachines() *MachinesRecord {
	result := func(contender, network string, seconds float64) NetworkResult {
		return NetworkResult{
			CopyResult: CopyResult{
				Contender: contender, Bytes: 1 << 30, Seconds: spreadAt(seconds), Rate: (1 << 30) / seconds,
				CPUPerGiB: 1,
			},
			Network: network,
		}
	}
	iperf, ours, failed := result(toolIperf, networkTCP, 0.5), result(programName, networkTCP, 0.5), NetworkResult{}
	iperf.NoFiles, iperf.CopySeconds = true, spreadAt(0.4)
	ours.Direction, ours.Path, ours.Encrypted, ours.CopySeconds = Push, "tls", true, spreadAt(0.45)
	failed.CopyResult = CopyResult{
		Contender: programName, Bytes: 1 << 30, Direction: Pull, Path: "rma", Error: "no\ndevice",
	}
	failed.Network = networkShared
	all := []NetworkResult{
		result(toolCp, networkNone, 0.25), result(candidateRsyncDaemon, networkTCP, 1), iperf, ours, failed,
		result(toolLimit, networkTCP, 0.4),
	}
	copies := []CopyResult{all[0].CopyResult, all[1].CopyResult, all[5].CopyResult}
	setRatios(copies)
	all[0].CopyResult, all[1].CopyResult, all[5].CopyResult = copies[0], copies[1], copies[2]
	setNetworkRatios(all)
	tree := sampleTrees()
	first := tree.Results[1]
	first.Contender = candidateRsyncDaemon
	return &MachinesRecord{
		CopySetup: sampleSetup, Results: all, Shapes: tree.Shapes, Trees: []TreeResult{tree.Results[0], first},
	}
}

// sample returns a record with every field, including a failure and characters to escape.
func sample() *Record {
	ours := func(size int64, direction bench.Direction, depth int, seconds float64) CopyResult {
		return CopyResult{
			Contender: programName, Bytes: size, Direction: direction, Chunk: 1 << 20, Depth: depth, Digest: "crc32c",
			MemoryTouched: true, Seconds: spreadAt(seconds), CopySeconds: spreadAt(seconds / 2),
			Connected: spreadAt(0.004), FirstByte: spreadAt(0.005),
			Rate: float64(size) / seconds, CPUPerGiB: 0.5,
		}
	}
	copies := &CopyRecord{
		CopySetup: sampleSetup,
		Results: []CopyResult{
			{Contender: toolCp, Bytes: 2 << 20, Seconds: spreadAt(0.002), Rate: 1 << 30, CPUPerGiB: 0.4},
			ours(2<<20, bench.HostToDPU, 1, 0.01), ours(2<<20, bench.HostToDPU, 16, 0.008),
			{Contender: toolCp, Bytes: 1 << 30, Seconds: spreadAt(0.25), Rate: 4 << 30, CPUPerGiB: 0.2},
			ours(1<<30, bench.HostToDPU, 1, 0.5), {Contender: "dd", Bytes: 1 << 30, Error: "dd: exit status 1: a | b"},
		},
	}
	setRatios(copies.Results[:3])
	setRatios(copies.Results[3:])
	engine := &bench.EngineRecord{Bytes: 1 << 30}
	for _, direction := range []bench.Direction{bench.HostToDPU, bench.DPUToHost} {
		for i, depth := range []int{1, 16} {
			engine.Results = append(engine.Results, bench.EngineResult{
				Direction: direction, Chunk: 64 << 10, Depth: depth,
				Seconds: spreadAt(1), Rate: float64(i+1) * (10 << 30), TasksPerSecond: 1e5, CPUPerGiB: 0.1,
			})
		}
	}
	engine.Results = append(engine.Results,
		bench.EngineResult{Direction: bench.DPUToHost, Chunk: 4 << 20, Depth: 1, Error: "too large"})
	return &Record{
		Record: bench.Record{
			Version: bench.RecordVersion, Date: "2026-01-02T03:04:05Z", Command: []string{"lab", "copy"},
			Program: "dma-copy <1 & 2>", Go: "go1", Runs: 3, Warmup: 1,
			Machine: bench.Machine{
				CPU: "CPU", Arch: "amd64", Cores: 2, Memory: 8 << 30, Kernel: "6.1",
				HugePages: "madvise", ShmemHuge: "never", Load: 0.25,
			},
			Device: &bench.Device{Driver: "soft", Version: "soft 1", Limits: "model=x,move_bytes=0",
				Model: "x: 1 GB/s"},
			Engine: engine,
		},
		Copies: copies, Trees: sampleTrees(), Connected: sampleConnected(),
		Machines: sampleMachines(),
	}
}

func TestReportGolden(t *testing.T) {
	for _, form := range []bench.Form{bench.Text, bench.Markdown} {
		var out bytes.Buffer
		if err := sample().Write(&out, form); err != nil {
			t.Fatal(err)
		}
		checkGolden(t, "report."+string(form)+".golden", out.Bytes())
	}
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (accept it with go test -update):\n%s", golden, got)
	}
}

func TestRecordSurvivesJSON(t *testing.T) {
	var before, after bytes.Buffer
	text, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseRecord(text)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(sample().Write(&before, bench.Text), read.Write(&after, bench.Text))
	if err != nil || before.String() != after.String() {
		t.Errorf("error %v, and from JSON it reads\n%s", err, after.String())
	}
	if failed, all := read.Failed(); failed != 6 || all != 35 {
		t.Errorf("%d of %d failed", failed, all)
	}
	for _, bad := range []string{
		"", "{}", "[]", `{"v": 2}`, `{"v": 1}`, `{"v": 1, "engine": {}}`, `{"v": 1, "engine": {"results": [{}]}}`,
		`{"v": 1, "copies": {"results": [{"contender": "cp"}]}}`,
		`{"v": 1, "connected": {"clients": [{"seconds": {}, "bytes_per_second": 1e-300}]}}`,
	} {
		if _, err := ParseRecord([]byte(bad)); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

// A record may come from anywhere: whatever is accepted can be printed and drawn.
func FuzzRecord(f *testing.F) {
	text, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"v":1,"engine":{}}`))
	f.Add([]byte(`{"v":1,"engine":{"results":[{"error":"x","depth":1},{"depth":2,"seconds":{}}]}}`))
	f.Add([]byte(`{"v":1,"engine":{},"copies":{"results":[{"seconds":{},"bytes":-1,"bytes_per_second":1e18}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		record, err := ParseRecord(text)
		if err != nil {
			return
		}
		if err := errors.Join(record.Write(io.Discard, bench.Text), record.Write(io.Discard,
			bench.Markdown)); err != nil {
			t.Error(err)
		}
		if err := record.Plot(io.Discard); err != nil && !errors.Is(err, ErrNothingToPlot) {
			t.Error(err)
		}
	})
}

// texts returns the texts of a drawing, which is XML.
func texts(t *testing.T, drawing []byte) (all []string) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, drawing)
		}
		if data, is := token.(xml.CharData); is && strings.TrimSpace(string(data)) != "" {
			all = append(all, string(data))
		}
	}
}

func TestPlot(t *testing.T) {
	var out bytes.Buffer
	if err := sample().Plot(&out); err != nil {
		t.Fatal(err)
	}
	drawn := strings.Join(texts(t, out.Bytes()), "\n") + "\n"
	for _, want := range []string{
		"dma-copy <1 & 2>, 2026-01-02T03:04:05Z", "Copies on ext4, a process started on each side, durability full",
		"GiB/s", "file size", "2 MiB", "1 GiB", "cp", "dma-copy host-to-dpu",
		"Engine alone, dpu-to-host, time model x, no bytes moved", "tasks in flight", "tasks of 64 KiB", "16",
	} {
		if !strings.Contains(drawn, want+"\n") {
			t.Errorf("%q is not in the drawing, which has\n%s", want, drawn)
		}
	}
	for _, unwanted := range []string{"dd", "4 MiB"} {
		if strings.Contains(drawn, unwanted+"\n") {
			t.Errorf("%q failed and is in the drawing", unwanted)
		}
	}
	for _, broken := range []string{"NaN", "Inf", "<no value>"} {
		if strings.Contains(out.String(), broken) {
			t.Errorf("%s in the drawing", broken)
		}
	}
}

func TestNothingToPlot(t *testing.T) {
	r := &Record{Copies: &CopyRecord{Results: []CopyResult{{Contender: "cp", Error: "failed"}}}}
	if err := r.Plot(io.Discard); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("error %v", err)
	}
	if err := (&Record{Trees: sampleTrees()}).Plot(io.Discard); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("error %v for trees", err)
	}
}
