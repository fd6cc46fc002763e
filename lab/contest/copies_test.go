package contest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// softDevice are the settings of so many runs on the software device.
func softDevice(runs int) bench.Settings {
	return bench.Settings{
		Driver: doca.Options{Choice: doca.ChooseSoft}, Runs: runs, Tell: func(string) {},
	}
}

var errFake = errors.New("failed on request")

func newTestWorkspace(t *testing.T, size int64) *workspace {
	t.Helper()
	f, err := newWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.makeSource(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWorkspaceDetectsAWrongTarget(t *testing.T) {
	f := newTestWorkspace(t, 3<<20+5)
	content, err := os.ReadFile(f.source())
	if err != nil || len(content) != 3<<20+5 {
		t.Fatalf("%d bytes, error %v", len(content), err)
	}
	check := func(changed []byte) error {
		if err := os.WriteFile(f.target(), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		return fileTask{f.newConditions(int64(len(content)))}.Check(t.Context(), true)
	}
	if err := check(content); err != nil {
		t.Error(err)
	}
	if err := check(content[1:]); err == nil {
		t.Error("a short target is accepted")
	}
	content = bytes.Clone(content)
	content[2<<20]++
	if err := check(content); err == nil || !strings.Contains(err.Error(), "offset 2097152") {
		t.Errorf("error %v for a target with a wrong byte", err)
	}
	if err := (fileTask{f.newConditions(1 << 20)}).Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.target()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is still there: %v", err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestWorkspaceWithoutSpace(t *testing.T) {
	f := newTestWorkspace(t, 1)
	if err := f.checkSpace(space{bytes: 1 << 20, inodes: 1}); err != nil {
		t.Error(err)
	}
	err := f.checkSpace(space{what: "files", bytes: 1 << 60, next: "do less"})
	if !errors.Is(err, job.ErrTarget) || !strings.Contains(err.Error(), "but files need 1 EiB: name another") {
		t.Errorf("error %v", err)
	}
	if _, err := newWorkspace(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, job.ErrTarget) {
		t.Errorf("error %v", err)
	}
}

func TestCpCopies(t *testing.T) {
	f := newTestWorkspace(t, 1<<20)
	for _, durability := range []string{"none", "file", "full"} {
		entries := fileTask{f.newConditions(1 << 20)}.toolEntries([]Tool{{toolCp, "9.1"}}, durability)
		c := entries[0].copyCandidate
		outcomes, err := bench.Rounds{Counted: 2}.Measure(t.Context(), []bench.Candidate{c})
		if err != nil || outcomes[0].Err != nil || len(outcomes[0].Runs) != 2 || outcomes[0].Runs[0].Seconds <= 0 {
			t.Errorf("%s: %+v, error %v", durability, outcomes, err)
		}
	}
}

// The error of a tool that fails has its last line on stderr.
func TestFailureHasTheLastLineOfTheTool(t *testing.T) {
	failing := child{argv: []string{"sh", "-c", "echo first >&2; echo sh: last >&2; exit 3"}}
	_, _, err := runStages(t.Context(), [][]child{{failing}})
	if err == nil || err.Error() != "sh: exit status 3: last" {
		t.Errorf("error %v", err)
	}
	if _, _, err := runStages(t.Context(), [][]child{{{argv: []string{"no-such-tool-at-all"}}}}); err == nil {
		t.Error("a missing tool ran")
	}
}

// A process that fails ends the other one of its stage, which would wait for it.
func TestFailureEndsTheOtherProcess(t *testing.T) {
	waiting, failing := child{argv: []string{"sleep", "1000"}}, child{argv: []string{"sh", "-c", "exit 7"}}
	_, _, err := runStages(t.Context(), [][]child{{waiting, failing}})
	if err == nil || err.Error() != "sh: exit status 7" {
		t.Errorf("error %v", err)
	}
}

// The children of a stage run in parallel, but are started in order.
func TestChildrenStartInOrder(t *testing.T) {
	var children []child
	for range 20 {
		children = append(children, child{argv: []string{"sh", "-c", "echo $$"}, stdout: new(bytes.Buffer)})
	}
	if _, _, err := runStages(t.Context(), [][]child{children}); err != nil {
		t.Fatal(err)
	}
	last, wrapped := 0, 0
	for _, j := range children {
		pid, err := strconv.Atoi(strings.TrimSpace(j.stdout.String()))
		if err != nil {
			t.Fatal(err)
		}
		if pid < last {
			wrapped++ // process IDs start again from a low number at some point
		}
		last = pid
	}
	if wrapped > 1 {
		t.Errorf("%d of 20 processes were started out of order", wrapped)
	}
}

func TestStagesFollowEachOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	stages := [][]child{
		{{argv: []string{"sh", "-c", "echo a > " + file}}},
		{{argv: []string{"sh", "-c", "echo b >> " + file}}},
	}
	if _, _, err := runStages(t.Context(), stages); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "a\nb\n" {
		t.Errorf("%q, error %v", text, err)
	}
}

func TestReadEvents(t *testing.T) {
	const hello = `{"type":"hello","time":"2026-01-02T03:04:05.1Z"}`
	const plan = `{"type":"plan","time":"2026-01-02T03:04:05.3Z","chunk":1}`
	const summary = `{"type":"summary","time":"2026-01-02T03:04:06Z","elapsed_seconds":0.5,"chunk":4096,"depth":3}`
	got, err := readEvents(bytes.NewBufferString(hello + "\n" + plan + "\n" + `{"type":"new"}` + "\n" + summary + "\n"))
	if err != nil || got.elapsed != 0.5 || got.chunk != 4096 || got.depth != 3 ||
		got.planned.Sub(got.connected).Milliseconds() != 200 {
		t.Errorf("%+v, error %v", got, err)
	}
	for _, missing := range []string{plan + summary, hello + summary, hello + plan, "", "no JSON"} {
		if _, err := readEvents(bytes.NewBufferString(missing)); err == nil {
			t.Errorf("accepted %q", missing)
		}
	}
}

// Settings of the user for copies must not change what is measured.
func TestEnvironmentOfTheSides(t *testing.T) {
	got := withoutProgramVariables([]string{
		"PATH=/bin", "DMA_COPY_CHUNK=1", "DMA_COPY_SOFT_DIR=/d", "DMA_COPY_SOFT_FAULTS=x", "DMA_COPY_SOFT_LIMITS=y",
		"DMA_COPY_JSON=z",
	})
	if want := []string{"PATH=/bin", "DMA_COPY_SOFT_FAULTS=x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestVariants(t *testing.T) {
	c := CopySettings{
		Chunks: []int64{0, 4096}, Depths: []int{1, 2, 3}, Directions: []bench.Direction{bench.HostToDPU,
			bench.DPUToHost},
		Digests: []string{"none", "crc32c"}, Paths: []string{"dma", "fast"}, Durability: "file",
	}
	all := c.variants()
	if len(all) != 48 || len(bench.Distinct(all, func(v variant) variant { return v })) != 48 {
		t.Errorf("%d variants: %v", len(all), all)
	}
}

func TestRatiosAreToCp(t *testing.T) {
	results := []CopyResult{
		{Contender: toolCp, Seconds: spreadAt(1)},
		{Contender: "dd", Seconds: spreadAt(2)},
		{Contender: "rsync", Error: "failed"},
		{Contender: programName, Seconds: spreadAt(0.5), CopySeconds: spreadAt(0.25)},
	}
	setRatios(results)
	for i, want := range [][2]float64{{1, 0}, {0.5, 0}, {0, 0}, {2, 4}} {
		if got := [2]float64{results[i].Ratio, results[i].CopyRatio}; got != want {
			t.Errorf("%s: %v, want %v", results[i].Contender, got, want)
		}
	}
	without := []CopyResult{{Contender: "dd", Seconds: spreadAt(2)}}
	setRatios(without)
	if without[0].Ratio != 0 {
		t.Error("a ratio without a result of cp")
	}
}

// testSettings are those of a copy in one way, compared with cp.
func testSettings(directory string) CopySettings {
	return CopySettings{
		Chunks: []int64{0}, Depths: []int{0}, Directions: []bench.Direction{bench.HostToDPU}, Digests: []string{"none"},
		Paths: []string{"auto"}, Durability: "none", Directory: directory, Tools: []string{toolCp},
	}
}

// A program that copies nothing is reported, and cp continues.
func TestMeasureReportsFailures(t *testing.T) {
	p := Plan{
		Copies: &CopyPlan{
			Sizes: []int64{4096}, CopySettings: testSettings(t.TempDir()),
		},
		Settings: softDevice(2), Program: "/bin/false",
	}
	record, err := Measure(t.Context(), p)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if failed, all := record.Failed(); failed != 1 || all != 2 {
		t.Fatalf("%d of %d failed: %+v", failed, all, record.Copies.Results)
	}
	cp, ours := record.Copies.Results[0], record.Copies.Results[1]
	if len(cp.Seconds.Runs) != 2 || ours.Seconds != nil || !strings.Contains(ours.Error, "exit status 1") {
		t.Errorf("cp %+v, ours %+v", cp, ours)
	}
	if left, err := os.ReadDir(p.Copies.Directory); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestMeasureIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errFake)
	p := Plan{
		Copies:   &CopyPlan{Sizes: []int64{4096}, CopySettings: testSettings(t.TempDir())},
		Settings: softDevice(1),
	}
	if _, err := Measure(ctx, p); !errors.Is(err, errFake) && !errors.Is(err, doca.ErrNoCgo) {
		t.Errorf("error %v", err)
	}
}
