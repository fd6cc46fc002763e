//go:build cgo

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// useSoftDevice points the environment at a software device of this test, whose directory must not be created.
func useSoftDevice(t *testing.T, side string) (runtimeDir string) {
	t.Helper()
	runtimeDir = filepath.Join(t.TempDir(), "absent")
	t.Setenv("DMA_COPY_SOFT_DIR", runtimeDir)
	t.Setenv("DMA_COPY_SOFT_SIDE", side)
	t.Setenv("DMA_COPY_SOFT_LIMITS", "")
	t.Setenv("DMA_COPY_SOFT_FUNCTIONS", "")
	return runtimeDir
}

func checkAbsent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was made: %v", path, err)
	}
}

func TestDevicesGolden(t *testing.T) {
	useSoftDevice(t, "all")
	for line, file := range map[string]string{
		"-o text": "devices.golden", "-o json": "devices.json.golden", "-l": "devices.long.golden",
	} {
		got := invoke(nil, append([]string{"devices", "--driver", "soft"}, words(line)...)...)
		checkGolden(t, filepath.Join("testdata", file), got)
	}
}

// readDevices lists the devices as JSON into found.
func readDevices(t *testing.T, found any) {
	t.Helper()
	got := invoke(nil, "devices", "-o", "json", "--driver", "soft")
	if err := json.Unmarshal([]byte(got.stdout), found); err != nil {
		t.Fatal(err)
	}
}

func TestDevicesShowKindsOfFunctions(t *testing.T) {
	useSoftDevice(t, "host")
	t.Setenv("DMA_COPY_SOFT_FUNCTIONS", "vf,sf")
	text := invoke(nil, "devices", "-l", "--driver", "soft").stdout
	for name, row := range map[string]string{"mlx5_0": "PF", "mlx5_4": "VF", "mlx5_5": "SF with index 4"} {
		if !strings.Contains(text, "  RDMA device      "+name+"\n") ||
			!strings.Contains(text, "  function         "+row+"\n") {
			t.Errorf("%s is not shown as %s:\n%s", name, row, text)
		}
	}
	var found struct {
		Devices []struct {
			RDMAName     string  `json:"rdma_name"`
			FunctionType string  `json:"function_type"`
			SFIndex      *uint32 `json:"sf_index"`
		}
	}
	readDevices(t, &found)
	kinds := map[string]string{"mlx5_0": "PF", "mlx5_1": "PF", "mlx5_4": "VF", "mlx5_5": "SF"}
	for _, device := range found.Devices {
		want := kinds[device.RDMAName]
		if device.FunctionType != want || (device.SFIndex != nil) != (want == "SF") {
			t.Errorf("%+v, want a %s", device, want)
		}
	}
	if len(found.Devices) != 4 {
		t.Fatalf("found %+v", found.Devices)
	}
	if index := found.Devices[3].SFIndex; index == nil || *index != 4 {
		t.Errorf("the SF has index %v", index)
	}
}

// A copy over a function takes the names that are shown of its representor.
func TestDevicesShowRepresentorsOfAllFunctions(t *testing.T) {
	useSoftDevice(t, "dpu")
	t.Setenv("DMA_COPY_SOFT_FUNCTIONS", "vf,sf")
	text := invoke(nil, "devices", "-l", "--driver", "soft").stdout
	for _, row := range []string{
		"host function 0000:b1:00.2 (VF, net device pf0vf0, VUID SOFT00000000MLNXS0D0F0VF1)\n",
		"host function 0000:b1:00.0 (SF, net device en3f0c1pf0sf4, VUID SOFT00000000CMLNXS0D0F0SF32768)\n",
	} {
		if strings.Count(text, row) != 2 {
			t.Errorf("the two functions of the DPU do not both show\n%sin\n%s", row, text)
		}
	}
}

// portLimits returns the JSON of a consumer or producer.
func portLimits(most, tasks float64) map[string]any {
	return map[string]any{"supported": true, "max_per_connection": most, "max_tasks_in_flight": tasks,
		"max_message_bytes": 1010.0, "max_list_length": 1.0}
}

// Each limit of the software device is one that devices shows, in text and in JSON.
func TestDevicesShowAllLimits(t *testing.T) {
	useSoftDevice(t, "host")
	t.Setenv("DMA_COPY_SOFT_LIMITS", "max_buf_size=1001,max_buf_list_len=1002,max_dma_tasks=1003,"+
		"max_msg_size=1004,max_name_len=105,max_recv_queue_size=1006,max_send_tasks=1007,max_clients=1008,"+
		"max_fast_tasks=1009,max_fast_buf_size=1010,max_imm_data_len=1011,max_consumers=1012,max_producers=1013")
	text := invoke(nil, "devices", "-l", "--driver", "soft").stdout
	for _, row := range []string{
		"DMA copies       up to 1001 bytes per task, up to 1003 tasks in flight, lists of up to 1002 buffers\n",
		"control channel  messages of up to 1004 bytes, 1006 in the receive queue, 1007 being sent, " +
			"server names of up to 104 bytes, up to 1008 clients of a server\n",
		"consumers        up to 1012 per connection, up to 1009 receives each, up to 1010 bytes each, " +
			"no buffer lists, immediate data of up to 1011 bytes\n",
		"producers        up to 1013 per connection, up to 1009 sends each, up to 1010 bytes each, " +
			"no buffer lists\n",
	} {
		if !strings.Contains(text, "  "+row) {
			t.Errorf("there is no row\n  %sin\n%s", row, text)
		}
	}
	var found struct{ Devices []map[string]any }
	readDevices(t, &found)
	want := map[string]map[string]any{
		"dma": {"copy_supported": true, "max_bytes_per_task": 1001.0, "max_tasks_in_flight": 1003.0,
			"max_list_length": 1002.0},
		"comch": {"max_message_bytes": 1004.0, "max_receive_queue_messages": 1006.0, "max_send_tasks": 1007.0,
			"max_server_name_bytes": 104.0, "max_clients": 1008.0},
		"fast_path": {"consumers": portLimits(1012, 1009), "producers": portLimits(1013, 1009),
			"max_immediate_bytes": 1011.0},
	}
	for name, object := range want {
		if got := found.Devices[0][name]; !reflect.DeepEqual(got, any(object)) {
			t.Errorf("%s is %v, want %v", name, got, object)
		}
	}
}

// Other programs read these names.
func TestDevicesInJSONHaveStableNames(t *testing.T) {
	useSoftDevice(t, "dpu")
	var found struct {
		Version int `json:"v"`
		Driver  map[string]any
		Devices []map[string]any
	}
	readDevices(t, &found)
	if found.Version != 1 || len(found.Devices) != 2 || found.Devices[0]["dpu_side"] != true {
		t.Fatalf("found %+v", found)
	}
	for _, name := range []string{"name", "hardware", "version", "library_directory", "library_files", "reason"} {
		if _, there := found.Driver[name]; !there {
			t.Errorf("the driver has no %s", name)
		}
	}
	for _, name := range []string{"pci_address", "rdma_name", "net_name", "port_rate_bits_per_second", "host_side",
		"dpu_side", "representors", "dma",
		"function_type", "memory", "comch", "error"} {
		if _, there := found.Devices[0][name]; !there {
			t.Errorf("the device has no %s", name)
		}
	}
}

func TestReadOnlyCommandsChangeNothing(t *testing.T) {
	runtimeDir := useSoftDevice(t, "all")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, name := range []string{"devices", "doctor", "version"} {
		if got := invoke(nil, name, "--driver", "soft"); got.err != nil || got.stdout == "" || got.stderr != "" {
			t.Errorf("%s: error %v, stdout %q, stderr %q", name, got.err, got.stdout, got.stderr)
		}
		checkAbsent(t, runtimeDir)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestCommandsWithoutDOCA(t *testing.T) {
	useSoftDevice(t, "all")
	nowhere := t.TempDir()
	cases := []struct {
		line string
		code int
	}{
		{"devices --driver doca", 6},
		{"devices --require-hw", 13},
		{"doctor --driver doca", 6},
		{"doctor --require-hw", 13},
		{"doctor", 0},
		{"doctor --driver soft --peer -p b1:00.1", 7},
		{"version --driver doca", 0},
		{"version --require-hw", 0},
	}
	for _, tc := range cases {
		got := invoke(nil, words(tc.line+" --doca-libdir "+nowhere)...)
		if code := exit.Code(got.err); code != tc.code || got.ran {
			t.Errorf("%s: exit code %d (%v), want %d", tc.line, code, got.err, tc.code)
		}
		if all := got.stdout + got.stderr; got.err == nil && !strings.Contains(all, "in "+nowhere) &&
			!strings.Contains(all, "required") {
			t.Errorf("%s does not say where it looked:\n%s", tc.line, all)
		}
	}
}

func TestDevicesWithBadSide(t *testing.T) {
	useSoftDevice(t, "middle")
	if got := invoke(nil, "devices", "--driver", "soft"); exit.Code(got.err) != exit.Device {
		t.Errorf("error %v", got.err)
	}
}

func TestDevicesWithBadLimits(t *testing.T) {
	useSoftDevice(t, "all")
	t.Setenv("DMA_COPY_SOFT_LIMITS", "max_msg_size=none")
	got := invoke(nil, "devices", "--driver", "soft")
	if exit.Code(got.err) != exit.Usage || !strings.Contains(got.err.Error(), "max_msg_size") {
		t.Errorf("error %v", got.err)
	}
}

func TestVersionNamesTheDriver(t *testing.T) {
	useSoftDevice(t, "all")
	got := invoke(nil, "version", "--driver", "soft")
	lines := slices.Collect(strings.Lines(got.stdout))
	want := []string{"driver: soft 1 (software device, no hardware)\n", "reason: the software device was requested\n"}
	if len(lines) != 4 || !slices.Equal(lines[2:], want) {
		t.Errorf("printed %q, error %v", got.stdout, got.err)
	}
	if !strings.HasPrefix(got.stdout, invoke(nil, "--version").stdout) {
		t.Error("version and --version differ")
	}
}
