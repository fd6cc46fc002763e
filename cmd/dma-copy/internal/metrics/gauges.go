package metrics

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/service"
)

// writeGauges appends the metrics of one moment. They are read from the server, so that they are right also after a
// failure.
func writeGauges(to *strings.Builder, software string, s service.Status) {
	draining := 0.0
	if s.Draining {
		draining = 1
	}
	writeGauge(to, namespace+"info", "1, with the name and version of the daemon.",
		labelText([]string{"software"}, []string{software}), 1)
	for _, each := range []struct {
		name, help string
		value      float64
	}{
		{"start_time_seconds", "Start of the daemon, in seconds since 1970.", float64(s.Started.UnixMilli()) / 1000},
		{"connections", "Authenticated connections.", float64(len(s.Connections))},
		{"pending_connections", "Connections that are not yet authenticated.", float64(s.Pending)},
		{"running_transfers", "Copies that are running.", float64(s.Running)},
		{"waiting_transfers", "Copies in the queue.", float64(s.Waiting)},
		{"memory_bytes", "Windows and buffers of all connections, in bytes.", float64(s.Memory)},
		{"connections_limit", "Authenticated connections that the daemon accepts at once.",
			float64(s.Limits.Connections)},
		{"transfers_limit", "Copies that run at once; more wait.", float64(s.Limits.Transfers)},
		{"memory_limit_bytes", "Limit of dma_copy_memory_bytes; 0 is no limit.", float64(s.Limits.Memory)},
		{"trusted_keys", "Keys that may use the daemon.", float64(s.TrustedKeys)},
		{"draining", "1 while the daemon takes no new connections and requests.", draining},
	} {
		writeGauge(to, namespace+each.name, each.help, "", each.value)
	}
}
