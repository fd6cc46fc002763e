//go:build cgo

package doca_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func openSoft(t *testing.T, limits string) *doca.Driver {
	t.Helper()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir(), SoftLimits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

const smallLimits = "max_buf_size=65536,max_buf_list_len=1,max_msg_size=64,max_recv_queue_size=4,max_send_tasks=2," +
	"max_name_len=16"

// The software device passes the suite with the limits of a BlueField, without mapping a peer's memory, with slow
// engines of little depth, and with small limits.
func TestSoftDevice(t *testing.T) {
	for name, limits := range map[string]string{
		"default":    "",
		"no mapping": "remote_mapping=0",
		"slow":       "task_latency_us=300,max_dma_tasks=100,max_buf_list_len=3",
		"modelled":   "model=bluefield2,dma_at_once=3",
		"small":      smallLimits,
	} {
		t.Run(name, func(t *testing.T) {
			docatest.Run(t, func(t *testing.T) *doca.Driver { return openSoft(t, limits) })
		})
	}
}

func TestSoftDeviceWithPollers(t *testing.T) {
	for name, limits := range map[string]string{"default": "", "small": smallLimits} {
		t.Run(name, func(t *testing.T) {
			docatest.RunPolled(t, func(t *testing.T) *doca.Driver { return openSoft(t, limits) })
		})
	}
}
