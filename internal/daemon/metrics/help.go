package metrics

import (
	"io"
	"strings"
	"sync"
)

// Description is the help of a metric.
type Description struct {
	Name   string
	Labels string // with commas; empty: none
	Text   string // a sentence
}

// Descriptions are the metrics of the daemon. The usual metrics of processes and of Go programs are served, too.
var Descriptions = [...]Description{
	{"dma_copy_build_info", "version", "1, with the version of the daemon."},
	{"dma_copy_draining", "", "1 while the daemon takes no new connections and requests."},
	{"dma_copy_trusted_keys", "", "Keys that may use the daemon."},
	{"dma_copy_connections", "", "Authenticated connections."},
	{"dma_copy_pending_connections", "", "Connections that are not yet authenticated."},
	{"dma_copy_connections_total", "", "Connections accepted."},
	{"dma_copy_auth_failures_total", "reason", "Connections that ended before they were authenticated, by reason."},
	{"dma_copy_requests_total", "operation, code", "Requests that ended, by operation and exit code; 0 is success."},
	{"dma_copy_request_duration_seconds", "operation", "Duration of requests, including the time in the queue."},
	{"dma_copy_running_transfers", "", "Copies that are running."},
	{"dma_copy_waiting_transfers", "", "Copies in the queue."},
	{"dma_copy_bytes_total", "direction", "Bytes copied, also of running copies, by direction as this daemon sees it."},
	{"dma_copy_entries_total", "operation", "Files, directories and symlinks copied, listed or removed."},
	{"dma_copy_stage_seconds_total", "stage",
		"Elapsed seconds of copies, divided among the stages in which their lanes spent the time."},
	{"dma_copy_engine_depth", "", "Chunks that a copy may have in flight in the engine."},
	{"dma_copy_retransmitted_chunks_total", "", "Chunks sent again after a checksum mismatch."},
	{"dma_copy_limited_total", "what", "Connections and requests refused or ended by a limit."},
	{"dma_copy_memory_bytes", "", "Windows and buffers of all connections, in bytes."},
	{"dma_copy_connections_limit", "", "Authenticated connections that the daemon accepts at once."},
	{"dma_copy_transfers_limit", "", "Copies that run at once; more wait."},
	{"dma_copy_memory_limit_bytes", "", "Limit of dma_copy_memory_bytes; 0 is no limit."},
	{"dma_copy_panics_total", "", "Connections ended by a defect of dma-copy."},
}

// helpLines replaces the empty help of each metric.
var helpLines = sync.OnceValue(func() *strings.Replacer {
	var pairs []string
	for _, d := range Descriptions {
		line := "# HELP " + d.Name
		pairs = append(pairs, line+"\n", line+" "+d.Text+"\n")
	}
	return strings.NewReplacer(pairs...)
})

// described adds the help to metrics, each of which is written at once.
type described struct{ to io.Writer }

// Write implements io.Writer.
func (d *described) Write(text []byte) (int, error) {
	if _, err := helpLines().WriteString(d.to, string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
