//go:build cgo

package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// A copy of --file that could not be removed is not made, and others are removed also after the end of the run. One
// that may remain is named.
func TestBenchRemovesItsCopy(t *testing.T) {
	key, err := identity.Generate()
	must(t, err)
	keep, in, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("content"), 0o600))
	server, err := service.NewServer(service.ServerConfig{
		Key: key, AuthNone: true, Copy: dmaxfer.Options{Software: "test 1"},
		Shares: []share.Share{
			{Name: "keep", Path: keep, Access: share.Write, NoOverwrite: true},
			{Name: "in", Path: in, Access: share.Write},
		},
	})
	must(t, err)
	host, dpu := comch.Pipe(4080)
	bus := dmaxfertest.NewBus(dmaxfertest.NoDeviceFaults())
	memory := func(*secure.Conn) window.Memory { return bus.Memory(1) }
	served := make(chan error)
	go func() {
		served <- server.Serve(t.Context(), service.Incoming{Conn: dpu, Memory: memory, Side: wire.DPU})
	}()
	client, err := service.Connect(t.Context(), service.ClientConfig{
		Conn: host, Memory: memory, Verify: secure.AnyKey, Anonymous: true, Software: "test 1",
	})
	must(t, err)
	var log strings.Builder
	b := benchRun{
		settings: Settings{Daemon: true, File: file}, log: zerolog.New(&log).Level(zerolog.WarnLevel),
		at: protocol.Place{Share: "keep"}, report: &Report{},
	}
	c := &contact.Conn{Client: client, Side: &device.Side{Is: wire.Host}}
	if err := b.wholeCopy(t.Context(), c); exit.Code(err) != exit.Refused {
		t.Errorf("got %v", err)
	}
	b.at.Share = "in"
	must(t, b.wholeCopy(t.Context(), c))
	must(t, os.WriteFile(filepath.Join(in, "copy"), nil, 0o600))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.removeCopy(ended, c, "copy", ended.Err()); !errors.Is(err, context.Canceled) || log.Len() > 0 {
		t.Errorf("got %v and %s", err, &log)
	}
	for _, dir := range []string{keep, in} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
	must(t, client.Close())
	must(t, <-served)
	err = b.removeCopy(t.Context(), c, "copy", nil)
	if err == nil || !strings.Contains(log.String(), `"path":"copy"`) {
		t.Errorf("got %v and %s", err, &log)
	}
}

// A bench on the DPU serves a new directory, to which a peer may only write.
func TestBenchShare(t *testing.T) {
	dir := t.TempDir()
	shares, err := temporaryShare(dir)
	must(t, err)
	if s := shares[0]; filepath.Dir(s.Path) != dir || s.Access != share.Write {
		t.Errorf("serves %s", s)
	}
	if _, err = temporaryShare(filepath.Join(dir, "none")); exit.Code(err) != exit.Target {
		t.Errorf("got %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
