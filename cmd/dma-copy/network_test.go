package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// What the user chooses has precedence; no option chooses a transport of UCX.
func TestUCXSettings(t *testing.T) {
	timeout, retries := ucx.AckFor(20 * time.Second)
	index := 3
	for name, c := range map[string]struct {
		given config.Network
		want  ucx.Settings
	}{
		"nothing": {config.Network{GIDIndex: config.GIDIndexAuto},
			ucx.Settings{AckTimeout: timeout, AckRetries: retries}},
		"everything": {
			config.Network{NetDevices: []string{"mlx5_0:1"}, TrafficClass: 104, AckTimeout: time.Second, AckRetries: 6,
				GIDIndex: index, DeviceMemory: 2048},
			ucx.Settings{NetDevices: []string{"mlx5_0:1"}, TrafficClass: 104, AckTimeout: time.Second, AckRetries: 6,
				GIDIndex: &index, DeviceMemory: 2048},
		},
		"the first entry": {config.Network{},
			ucx.Settings{AckTimeout: timeout, AckRetries: retries, GIDIndex: new(int)}},
	} {
		if got := ucxSettings(c.given, 20*time.Second); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDeviceMemoryWithoutADevice(t *testing.T) {
	card, softRoCE := ucx.Port{Device: "mlx5_0"}, ucx.Port{Device: "rxe0", Software: true}
	for name, c := range map[string]struct {
		size  int64
		ports []ucx.Port
		want  bool
	}{
		"not asked for": {0, nil, false},
		"no device":     {2048, nil, true},
		"soft-RoCE":     {2048, []ucx.Port{softRoCE}, true},
		"a card":        {2048, []ucx.Port{softRoCE, card}, false},
	} {
		var log strings.Builder
		warnOfDeviceMemory(config.Network{DeviceMemory: c.size}, c.ports, zerolog.New(&log))
		if got := strings.Contains(log.String(), "--device-memory has no effect"); got != c.want {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
}

// Without keys a command connects to this machine only, whatever address localhost has.
func TestAuthNoneStaysOnThisMachine(t *testing.T) {
	_, err := dial(t.Context(), "192.0.2.1:7483", reach{
		Contact: config.Contact{Auth: config.AuthNone}, wait: time.Minute,
	}, service.ClientConfig{Log: zerolog.Nop()})
	if report.ExitCode(err) != exit.Usage || !strings.Contains(err.Error(), "address of another machine") {
		t.Errorf("got %v", err)
	}
}

// A path that does not work is left before the idle timeout ends the copy.
func TestReachTime(t *testing.T) {
	if got := networkSettings(config.Network{}, 20*time.Second, nil).ReachTime; got != 10*time.Second {
		t.Errorf("the first read may take %s", got)
	}
}
