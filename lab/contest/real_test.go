package contest

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// TestContestsOfTheProgram runs each contest once, small, with the program of this checkout.
func TestContestsOfTheProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), programName)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./cmd/dma-copy")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	settings := func() CopySettings {
		s := testSettings(t.TempDir())
		s.Tools = []string{toolCp}
		return s
	}
	network := settings()
	network.Directions, network.Paths = []bench.Direction{Push, Pull}, []string{"tls", "tcp"}
	for name, plan := range map[string]Plan{
		"copy": {Copies: &CopyPlan{Sizes: []int64{70_000}, CopySettings: settings()}},
		"tree": {Trees: &TreePlan{Shapes: []filetree.Shape{filetree.Small}, Files: 20, CopySettings: settings()}},
		"connected": {Connected: &ConnectedPlan{
			Sizes: []int64{70_000}, Files: 20, Daemons: []DaemonSide{DaemonOnDPU, DaemonOnHost}, Clients: 2,
			CopySettings: settings(),
		}},
		"machines": {Machines: &MachinesPlan{Sizes: []int64{70_000}, Files: 20, CopySettings: network}},
	} {
		t.Run(name, func(t *testing.T) {
			plan.Settings, plan.Program = softDevice(1), program
			record := measured(t, plan)
			failed, all := record.Failed()
			if failed > 0 || all < 2 {
				t.Errorf("%d of %d failed: %+v", failed, all, record.parts())
			}
		})
	}
}

func measured(t *testing.T, plan Plan) *Record {
	t.Helper()
	record, err := Measure(context.WithoutCancel(t.Context()), plan)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record
}
