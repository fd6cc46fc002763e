package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The confined daemon serves the page, and counts a copy while it runs.
func TestStatusPageOfADaemon(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	d := f.serve("--status-page")
	if page := d.get("/"); !strings.Contains(page, "<title>dma-copy</title>") {
		t.Errorf("got %s", page)
	}
	must(t, os.WriteFile(f.local("image"), make([]byte, 8<<20), 0o644))
	source := f.commands() + "/image"
	f.expectCommand("push " + source + " :files/")
	d.waitUntilIdle()
	const first = `dma_copy_bytes_total{direction="received"} 8388608` + "\n"
	if !strings.Contains(d.get("/metrics"), first) {
		t.Error("not all bytes are counted after the copy")
	}

	// It takes eight minutes, and is stopped before.
	push := f.command("push --no-resume --chunk 4KiB --bwlimit 16KiB " + source + " :files/slow")
	d.waitForStatus("busy", func(s daemonStatus) bool {
		return len(s.Connections) == 1 && s.Connections[0].Request != nil && s.Connections[0].Request.Moved > 0
	})
	var shown daemonStatus
	must(t, json.Unmarshal([]byte(d.get("/status.json")), &shown))
	if len(shown.Connections) != 1 || shown.Connections[0].Request == nil ||
		shown.Connections[0].Request.Path != "slow" {
		t.Errorf("got %+v", shown)
	}
	if strings.Contains(d.get("/metrics"), first) {
		t.Error("no byte is counted while the copy runs")
	}
	must(t, push.signal(syscall.SIGINT))
	push.expectExit(exitInterrupt)
	d.stop()
}
