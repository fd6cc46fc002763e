package ucx

import (
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	index := 0
	all := Settings{
		Transports: []string{"rc", "ud"}, NetDevices: []string{"mlx5_0:1", "mlx5_1:1"}, TrafficClass: 104,
		GIDIndex: &index, AckTimeout: 250 * time.Millisecond, AckRetries: 9, DeviceMemory: 8192,
	}
	for name, test := range map[string]struct {
		settings Settings
		rdma     bool
		want     map[string]string
	}{
		"nothing": {Settings{}, true, map[string]string{
			"ADDRESS_VERSION": "v1", "UNIFIED_MODE": "n", "KEEPALIVE_INTERVAL": "inf",
		}},
		"without RDMA devices": {all, false, map[string]string{
			"TLS": "rc,ud", "NET_DEVICES": "mlx5_0:1,mlx5_1:1", "KEEPALIVE_INTERVAL": "inf",
			"ADDRESS_VERSION": "v1", "UNIFIED_MODE": "n",
		}},
		"with RDMA devices": {all, true, map[string]string{
			"TLS": "rc,ud", "NET_DEVICES": "mlx5_0:1,mlx5_1:1", "KEEPALIVE_INTERVAL": "inf",
			"ADDRESS_VERSION": "v1", "UNIFIED_MODE": "n",
			"IB_TRAFFIC_CLASS": "104", "GID_INDEX": "0", "RC_TIMEOUT": "250000us", "RC_RETRY_COUNT": "6",
			"IB_DM_SIZE": "8192",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			options := test.settings.options(test.rdma)
			for _, o := range options {
				if want, expected := test.want[o.name]; !expected || o.value != want {
					t.Errorf("%s is %s, want %q", o.name, o.value, want)
				}
			}
			if len(options) != len(test.want) {
				t.Errorf("got %v, want %v", options, test.want)
			}
		})
	}
}

// A device that waits four times as long as it is told, before each retry and after the last one, must have given up
// when the idle timeout ends.
func TestDeviceGivesUpBeforeTheIdleTimeout(t *testing.T) {
	for idle := time.Second; idle < time.Hour; idle += 700 * time.Millisecond {
		timeout, retries := AckFor(idle)
		if retries < 1 || retries > MaxAckRetries || timeout < minAckTimeout {
			t.Fatalf("idle timeout %s: %s, %d retries", idle, timeout, retries)
		}
		if worst := AckLimit(timeout, retries); worst > idle/2 || worst != 4*timeout*time.Duration(retries+1) {
			t.Fatalf("idle timeout %s: the device gives up after up to %s", idle, worst)
		}
	}
}
