package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// networkPath is the path of a copy with a daemon on another machine.
var networkPath = report.Path{
	Software: "dma-copy VERSION", Side: wire.Client, Driver: "network", Address: "lab:7483", File: "x",
	Remote: "lab:in/x", Peer: &report.Peer{Key: "lab", Fingerprint: "dma-copy-v1:abc", Authenticated: true},
}

// The summary says by which path the bytes went, and what protected them on it.
func TestSummaryOfACopyBetweenMachines(t *testing.T) {
	nobody := networkPath
	nobody.Peer = &report.Peer{Fingerprint: "dma-copy-v1:abc"}
	unnamed := networkPath
	unnamed.Peer = &report.Peer{Fingerprint: "dma-copy-v1:abc", Authenticated: true}
	for name, tc := range map[string]struct {
		by        wire.Path
		transport string
		path      report.Path
		want      string
	}{
		"tls": {wire.PathTLS, "", networkPath, "path  tls to lab:7483 (encrypted)\npeer  lab: authenticated\n"},
		"tcp": {wire.PathTCP, "", networkPath,
			"path  tcp to lab:7483 (authenticated, not encrypted)\npeer  lab: authenticated\n"},
		"rma": {wire.PathRMA, "rc_mlx5/mlx5_0:1", networkPath,
			"path  rma over rc_mlx5/mlx5_0:1 to lab:7483 (authenticated, not encrypted)\npeer  lab: authenticated\n"},
		"am, --auth none": {wire.PathMessages, "tcp/lo", nobody,
			"path  am over tcp/lo to lab:7483 (not encrypted)\npeer  not authenticated (--auth none)\n"},
		"a key without a name": {wire.PathTLS, "", unnamed, "\npeer  dma-copy-v1:abc: authenticated\n"},
	} {
		var out bytes.Buffer
		s := job.Summary{Sent: true, Path: "x", Size: 1, Elapsed: time.Second, Protocol: wire.Native,
			Durability: wire.DurabilityFull, DataPath: tc.by, Transport: tc.transport}
		writeSummary(&out, s, job.Planned{}, tc.path, true)
		if !strings.Contains(out.String(), tc.want) || !strings.Contains(out.String(), "durable on the server") {
			t.Errorf("%s: printed\n%s\nlacks %q", name, out.String(), tc.want)
		}
	}
}

func TestEventsOfACopyBetweenMachines(t *testing.T) {
	var out bytes.Buffer
	r := newJSON(&out, Form{}, zerolog.Nop())
	r.Begin(networkPath)
	r.Event(job.PeerKnown{Protocol: wire.Native, Version: 1})
	if err := r.Result(job.Summary{Sent: true, Path: "x", Protocol: wire.Native, DataPath: wire.PathRMA,
		Transport: "rc_mlx5/mlx5_0:1"}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if _, err := checkEvent(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, want := range []string{`"side":"client"`, `"address":"lab:7483"`, `"data_path":"rma"`,
		`"transport":"rc_mlx5/mlx5_0:1"`, `"encrypted":false`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}
