//go:build cgo

package dmaxfer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// refusable are the functions that make and give back a copy's windows, buffers and engines.
var refusable = []string{
	"doca_mmap_create", "doca_mmap_set_memrange", "doca_mmap_start", "doca_mmap_export_pci",
	"doca_mmap_create_from_export", "doca_mmap_destroy", "doca_dma_create", "doca_dma_task_memcpy_set_conf",
	"doca_ctx_start", "doca_buf_inventory_create", "doca_buf_inventory_start", "doca_buf_inventory_buf_get_by_addr",
	"doca_dma_task_memcpy_alloc_init", "doca_task_submit",
}

// refusals is how many calls of each are refused, one in each copy.
const refusals = 4

// A device that refuses a call ends the copy on both sides or on none, leaves the target's directory as it was or with
// the whole file, and keeps nothing registered; the next copy succeeds.
func TestEveryRefusedDOCACall(t *testing.T) {
	failed := 0
	for _, function := range refusable {
		for n := 1; n <= refusals; n++ {
			for _, name := range []string{"from the host", "from the DPU"} {
				t.Run(fmt.Sprint(function, " ", n, " ", name), func(t *testing.T) {
					if refused(t, function, n, name) {
						failed++
					}
				})
			}
		}
	}
	if failed < 2*len(refusable) {
		t.Errorf("only %d copies failed", failed)
	}
}

func bothFailed(both outcome) bool {
	return both.errs[wire.Host] != nil && both.errs[wire.DPU] != nil
}

// refused reports whether the copy failed.
func refused(t *testing.T, function string, n int, way string) bool {
	t.Setenv("DMA_COPY_SOFT_FAULTS", fmt.Sprintf("refuse=%s:%d:NO_MEMORY", function, n))
	setup := newSetup(t, "")
	setup.host.Log, setup.dpu.Log = zerolog.Nop(), zerolog.Nop()
	setup.host.Wait, setup.dpu.Wait = 200*time.Millisecond, 200*time.Millisecond
	sender, receiver := setup.directions()[way][0], setup.directions()[way][1]
	want := content(7 * testChunk)
	jobtest.WriteFile(t, sender.File, want)
	both := setup.run(t.Context())
	for bothFailed(both) && !strings.Contains(fmt.Sprint(both.errs), "NO_MEMORY") { // they did not meet in time
		setup.host.Wait, setup.dpu.Wait = 2*setup.host.Wait, 2*setup.dpu.Wait
		both = setup.run(t.Context())
	}
	jobtest.MustHold(t, filepath.Dir(sender.File), "file")
	if (both.errs[wire.Host] == nil) != (both.errs[wire.DPU] == nil) {
		t.Errorf("the sides do not agree: %v", both.errs)
	}
	if both.errs[receiver.Side] == nil {
		jobtest.MustContain(t, receiver.File, want)
		jobtest.MustHold(t, filepath.Dir(receiver.File), "file")
		return false
	}
	if _, err := os.Stat(receiver.File); err == nil {
		t.Errorf("the file has its name, and yet: %v", both.errs)
	}
	sender.Wait, receiver.Wait = time.Minute, time.Minute // no call is refused any more
	setup.mustRun(t, sender, receiver, int64(len(want)))
	jobtest.MustContain(t, receiver.File, want)
	jobtest.MustHold(t, filepath.Dir(receiver.File), "file")
	return true
}
