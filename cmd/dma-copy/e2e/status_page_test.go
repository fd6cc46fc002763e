package e2e

import (
	"encoding/json"
	"os"
	"strings"
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
	push := f.command("push --bwlimit 1MiB " + f.commands() + "/image :files/")
	d.waitForStatus("busy", func(s daemonStatus) bool {
		return len(s.Connections) == 1 && s.Connections[0].Request != nil && s.Connections[0].Request.Moved > 0
	})
	var shown daemonStatus
	must(t, json.Unmarshal([]byte(d.get("/status.json")), &shown))
	if len(shown.Connections) != 1 || shown.Connections[0].Request == nil ||
		shown.Connections[0].Request.Path != "image" {
		t.Errorf("got %+v", shown)
	}
	const received = `dma_copy_bytes_total{direction="received"} `
	if strings.Contains(d.get("/metrics"), received+"0\n") {
		t.Error("no byte is counted while the copy runs")
	}
	push.expectExit(exitOK)
	d.waitUntilIdle()
	if !strings.Contains(d.get("/metrics"), received+"8.388608e+06\n") {
		t.Error("not all bytes are counted after the copy")
	}
	d.stop()
}
