//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/bench"
	"github.com/dma-copy/dma-copy/internal/cli/config"
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

// The schema describes all that a report may have.
func TestBenchSchema(t *testing.T) {
	of := bench.Case{From: "host", Path: "dma", Chunk: 4096, Depth: 8, Lanes: 2}
	results := []bench.Result{{Case: of, Bytes: 1 << 20, Seconds: 0.5, Rate: 2 << 20, Latency: 1e-4}}
	r := bench.Report{
		Version: 1, Software: "dma-copy 1", Side: "host", Driver: "soft", Peer: "dma-copy 2", Results: results,
		Control:     &bench.RoundTrips{Count: 200, Min: 1e-6, Median: 2e-6, P99: 3e-6},
		Skipped:     []bench.Skipped{{From: "dpu", Path: "fast", Reason: "it lacks that"}},
		File:        &bench.File{Path: "file", Bytes: 1, Seconds: 1, Rate: 1, Limit: "peer", Part: 0.5, Most: "x"},
		Recommended: bench.Recommend(results),
	}
	var text strings.Builder
	must(t, r.WriteJSON(&text))
	document := checkDocument(t, "bench.schema.json", text.String())
	if chosen := document["recommended"].(map[string]any); fmt.Sprint(chosen["depth"]) != "8" {
		t.Errorf("recommends %v", chosen)
	}
}

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
		settings: config.Bench{Daemon: true, File: file}, log: zerolog.New(&log).Level(zerolog.WarnLevel),
		at: protocol.Place{Share: "keep"}, report: &bench.Report{},
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

// Settings that cannot be measured are refused at once.
func TestBenchIsRefused(t *testing.T) {
	useSoftDevice(t, "all")
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"bench --path tls": "--path tls is for daemons on other machines",
		"bench a b":        "dma-copy bench takes one PEER or none",
		"bench : -f x":     "--file needs the directory of a share for the copy",
		"bench --each 6s":  "a measurement takes at most 5s",
		"bench --chunks 1": "not a chunk; give 4KiB to 1GiB",
		"bench -p 03:00.1 -r b1:00.1 --driver soft --plot x": "--plot is for the side that measures",
	} {
		got := invoke(nil, words(line)...)
		if exit.Code(got.err) != 3 || !strings.Contains(fmt.Sprint(got.err), want) {
			t.Errorf("%s: %v", line, got.err)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
