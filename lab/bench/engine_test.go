package bench

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

func measureEngineAlone(t *testing.T, p Plan) *EngineRecord {
	t.Helper()
	p.Settings = Settings{Driver: doca.Options{Choice: doca.ChooseSoft}, Runs: 2, Warmup: 1, Tell: func(string) {}}
	record, err := Measure(t.Context(), p)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if open := doca.OpenHandles(); len(open) > 0 {
		t.Errorf("%d handles are open: %v", len(open), open)
	}
	return record.Engine
}

// More tasks than slots, fewer, and as many; with a last task beyond the bytes.
func TestEngineBothWays(t *testing.T) {
	record := measureEngineAlone(t, Plan{
		Bytes: 300_000, Chunks: []int64{4096, 65536}, Depths: []int{1, 3, 100},
		Directions: []Direction{HostToDPU, DPUToHost},
	})
	if len(record.Results) != 12 {
		t.Fatalf("%d results", len(record.Results))
	}
	for _, r := range record.Results {
		if r.Error != "" || r.Seconds == nil || len(r.Seconds.Runs) != 2 || r.Rate <= 0 || r.TasksPerSecond <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestEngineBeyondTheDevice(t *testing.T) {
	record := measureEngineAlone(t, Plan{
		Bytes: 4 << 20, Chunks: []int64{4096, 4 << 20}, Depths: []int{2, 2000}, Directions: []Direction{HostToDPU},
	})
	for _, r := range record.Results {
		switch {
		case r.Chunk == 4096 && r.Depth == 2 && r.Error != "":
			t.Errorf("%+v", r)
		case r.Depth == 2000 && !strings.Contains(r.Error, "limit of 1024 tasks"),
			r.Chunk > 2<<20 && r.Depth == 2 && !strings.Contains(r.Error, "limit of 2 MiB"):
			t.Errorf("%+v", r)
		}
	}
}

// A device that drops bytes fails.
func TestEngineThatCopiesWrongly(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "drop=1,drop=2,drop=3,drop=4")
	record := measureEngineAlone(t, Plan{
		Bytes: 4096, Chunks: []int64{4096}, Depths: []int{1}, Directions: []Direction{HostToDPU},
	})
	if got := record.Results[0].Error; !strings.Contains(got, "differs from the source") {
		t.Errorf("error %q", got)
	}
}

func TestEngineThatFails(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "fail=2:DRIVER")
	record := measureEngineAlone(t, Plan{
		Bytes: 65536, Chunks: []int64{4096}, Depths: []int{4}, Directions: []Direction{HostToDPU, DPUToHost},
	})
	if got := record.Results[0].Error; !strings.Contains(got, "DRIVER") {
		t.Errorf("error %q", got)
	}
	if got := record.Results[1].Error; got != "" {
		t.Errorf("error %q of a candidate without a fault", got)
	}
}

// If no bytes are copied, the target is not compared, and the record says that none are.
func TestEngineThatMovesNothing(t *testing.T) {
	t.Setenv(LimitsVariable, "move_bytes=0")
	p := Plan{
		Bytes: 65536, Chunks: []int64{4096}, Depths: []int{4}, Directions: []Direction{HostToDPU},
		Settings: Settings{
			Driver: doca.Options{Choice: doca.ChooseSoft}, Model: "bluefield3", Runs: 1, Tell: func(string) {},
		},
	}
	record, err := Measure(t.Context(), p)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := record.Device
	if d.Moves || !strings.HasPrefix(d.Model, "bluefield3: ") || d.Limits != "model=bluefield3,move_bytes=0" {
		t.Errorf("%+v", d)
	}
	if got := record.Engine.Results[0].Error; got != "" {
		t.Errorf("error %q", got)
	}
}

// The engine loop must measure the device, not the garbage collector.
func TestEngineLoopAllocatesNothing(t *testing.T) {
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir()})
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	names, err := FindSides(driver)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openEngineSetup(driver, names)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	plan := Plan{Bytes: 4096, Chunks: []int64{4096}, Depths: []int{4}, Directions: []Direction{HostToDPU}}
	all, _, err := plan.candidates(s, true)
	if err != nil {
		t.Fatal(err)
	}
	c := all[0].(*engineCopy)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.engine.Close()
	if got := testing.AllocsPerRun(20, func() {
		if err := c.loop.run(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations for 100 tasks", got)
	}
}
