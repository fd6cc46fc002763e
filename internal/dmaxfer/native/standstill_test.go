package native

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A panic while a transfer describes itself is logged with its stack. It ends nothing, and does not keep the transfer
// from going on.
func TestPanicOfADescription(t *testing.T) {
	var log bytes.Buffer
	config := &role.Config{Options: role.Options{Side: wire.DPU, Log: zerolog.New(&log)}}
	tr := &transfer{config: config, owner: make(semaphore, 1), lent: make(semaphore, 1)} // without a session
	for range 2 {
		if s := tr.describe(t.Context()); !s.Busy || s.Side != "DPU" || s.Peer != "host" {
			t.Errorf("the description is %+v", s)
		}
	}
	if text := log.String(); strings.Count(text, `"panic":`) != 2 || !strings.Contains(text, "snapshot") {
		t.Errorf("the log is %s", text)
	}
	if len(tr.owner)+len(tr.lent) != 0 {
		t.Error("the owner is not released")
	}
}
