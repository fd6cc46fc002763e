//go:build cgo

package cabi

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/softdoca/device"
)

func TestSoftLimitsAreTaken(t *testing.T) {
	const limits = "max_buf_size=12345,max_msg_size=100,max_recv_queue_size=7,max_send_tasks=5,max_name_len=9," +
		"max_buf_list_len=3,max_clients=11,max_fast_tasks=12,max_fast_buf_size=13,max_imm_data_len=14," +
		"max_consumers=15,max_producers=16"
	abi, err := OpenSoft(device.Settings{Dir: t.TempDir(), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer abi.Close()
	list, infos, err := abi.DevinfoCreateList()
	if err != nil || len(infos) == 0 {
		t.Fatalf("%d devices: %v", len(infos), err)
	}
	defer abi.DevinfoDestroyList(list)
	got := abi.DevinfoCaps(infos[0])
	want := DevinfoCaps{
		MemcpySupported: true, MaxBufferSize: 12345, MaxList: 3, ExportSupported: true, ImportSupported: true,
		ClientSupported: true, MaxMessage: 100, MaxReceiveQueue: 7, MaxSends: 5, MaxServerNameSize: 9, MaxClients: 11,
		ActiveRate: got.ActiveRate, MaxImmediate: 14,
		Consumer: PortCaps{Supported: true, MaxTasks: 12, MaxBuffer: 13, MaxList: 1, MaxPorts: 15},
		Producer: PortCaps{Supported: true, MaxTasks: 12, MaxBuffer: 13, MaxList: 1, MaxPorts: 16},
	}
	if got != want {
		t.Errorf("the device has %+v", got)
	}
}

// An invalid limit is reported by one sentence that names it.
func TestSoftLimitsAreRefused(t *testing.T) {
	for limits, word := range map[string]string{
		"nonsense":                          "nonsense",
		"max_buf=1":                         "max_buf",
		"max_buf_size_=1":                   "max_buf_size_",
		"MAX_BUF_SIZE=1":                    "MAX_BUF_SIZE",
		"max_buf_size":                      "max_buf_size",
		"max_buf_size=":                     "max_buf_size",
		"max_buf_size=0":                    "max_buf_size",
		"max_buf_size=-1":                   "-1",
		"max_buf_size=+1":                   "+1",
		"max_buf_size=1k":                   "1k",
		"max_buf_size= 1":                   "max_buf_size",
		"max_buf_size=0x10":                 "0x10",
		"max_buf_size=18446744073709551616": "18446744073709551616",
		"max_buf_size=18446744073709551615": "max_buf_size",
		"pin_files=2":                       "pin_files",
		"max_msg_size=10,":                  "not known",
		",max_msg_size=10":                  "not known",
		"max_msg_size=10,,pin_files=1":      "not known",
		"max_msg_size=10;pin_files=1":       "10;pin_files=1",
		"=":                                 "=",
		strings.Repeat("x", 10_000):         "xxx",
		"max_msg_size=" + strings.Repeat("9", 10_000): "999",
	} {
		abi, err := OpenSoft(device.Settings{Dir: t.TempDir(), Limits: limits})
		if err == nil {
			abi.Close()
			t.Errorf("%.40q was taken", limits)
			continue
		}
		if !strings.Contains(err.Error(), word) || strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 600 {
			t.Errorf("%.40q is answered by %q, which is not a sentence about %s", limits, err, word)
		}
	}
}

func TestSoftLimitsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_LIMITS", "max_msg_size=none")
	if abi, err := OpenSoft(device.Settings{Dir: t.TempDir(), Limits: ""}); err == nil {
		abi.Close()
		t.Error("the environment was not read")
	}
	abi, err := OpenSoft(device.Settings{Dir: t.TempDir(), Limits: "max_msg_size=10"})
	if err != nil {
		t.Fatal(err)
	}
	abi.Close()
}
