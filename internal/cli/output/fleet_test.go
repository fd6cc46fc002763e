package output

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// reportFleet reports on four peers, of which one has failed and one was not started. One has served another one.
func reportFleet(s Form) (stdout, stderr string, err error) {
	var out, lines strings.Builder
	f := NewFleet(&out, &lines, nil, s, zerolog.Nop())
	err = everyPeer(f)
	f.Fail(err)
	return out.String(), lines.String(), err
}

// everyPeer reports each kind of result. It returns the error of the total.
func everyPeer(f *Fleet) error {
	f.Begin(4)
	f.moves(2, 1<<20)
	sum, _ := digest.ParseSum("crc32c:1f0e22c4")
	f.Ended(&PeerResult{
		Name: "one:in/", Line: 1, Sum: sum,
		Path: report.Path{Address: "[::1]:7", Peer: &report.Peer{Fingerprint: "dma-copy-v1:x", Authenticated: true}},
		Last: job.Summary{Protocol: wire.Native, DataPath: wire.PathRMA, Transport: "rc_mlx5/mlx5_0:1"},
		Done: report.Total{Sources: 1, Files: 1, Bytes: 3 << 20, Elapsed: 2 * time.Second},
	})
	cause := &report.SideError{Side: wire.Host, Err: exit.Errorf(exit.Peer, "check it", "the \x1b[31mcable broke")}
	f.Ended(&PeerResult{
		Name: "two:in/", Line: 2, Err: report.SomeSources(2, []error{cause}), Causes: []error{cause},
		Done: report.Total{Sources: 2, Failed: 1, Files: 1, Bytes: 5},
	})
	f.moves(4, 1<<20)
	f.Ended(&PeerResult{
		Name: "four:in/", Line: 4, Sum: sum, Path: report.Path{Address: "[::1]:8"},
		Done: report.Total{Sources: 1, Files: 1, Bytes: 3 << 20, Elapsed: time.Second},
	})
	f.NotStarted("three:in/", 5, errTest)
	return f.Total(3 * time.Second)
}

var errTest = errors.New("stopped")

func TestFleetText(t *testing.T) {
	stdout, stderr, err := reportFleet(Form{})
	const want = "ok    one:in/: 1 file copied, 3.0 MiB in 2s  rma over rc_mlx5/mlx5_0:1" +
		` (authenticated, not encrypted)  crc32c:1f0e22c4
fail  two:in/: host: the \x1b[31mcable broke: check it
ok    four:in/: 1 file copied, 3.0 MiB in 1s  crc32c:1f0e22c4
total 4 peers (1 failed, 1 not started), 3 files copied, 6.0 MiB in 3s
`
	if stdout != "" || stderr != want {
		t.Errorf("stdout %q, stderr\n%s", stdout, stderr)
	}
	if exit.Code(err) != exit.SomeFailed || err.Error() != "1 of 4 peers failed" {
		t.Errorf("%v has the code %d", err, exit.Code(err))
	}
	if _, stderr, _ = reportFleet(Form{Quiet: true}); strings.Count(stderr, "\n") != 1 ||
		!strings.HasPrefix(stderr, "fail  two:in/: ") {
		t.Errorf("with --quiet:\n%s", stderr)
	}
}

func TestFleetEvents(t *testing.T) {
	stdout, stderr, _ := reportFleet(Form{Output: option.OutputJSON})
	var kinds []string
	for line := range strings.Lines(stdout) {
		kind, err := checkEvent(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		kinds = append(kinds, kind)
	}
	if got := strings.Join(kinds, " "); got != "peer peer peer peer peers error" || stderr != "" {
		t.Errorf("events %s, stderr %q", got, stderr)
	}
	for _, part := range []string{
		`"data_path":"rma","transport":"rc_mlx5/mlx5_0:1","encrypted":false,"code":0`,
		`"peer":"two:in/","line":2,"sources":2,"failed":1,"files":1,"bytes":5,`,
		`"code":12,"message":"host: the \\x1b[31mcable broke: check it"`,
		`"peer":"three:in/","line":5,`, `"message":"stopped","not_started":true`,
		`"peer":"four:in/","line":4,"sources":1,`,
		`"peers":4,"failed":1,"not_started":1,"files":3,"bytes":6291461,`,
	} {
		if !strings.Contains(stdout, part) {
			t.Errorf("no %s in\n%s", part, stdout)
		}
	}
}

// TestFleetCode lets peers fail alike and differently.
func TestFleetCode(t *testing.T) {
	for _, tc := range []struct {
		codes []int // of all peers
		want  int
	}{
		{[]int{0, 0}, exit.OK}, {[]int{7, 7}, exit.Peer}, {[]int{7, 8}, exit.SomeFailed},
		{[]int{0, 7}, exit.SomeFailed},
	} {
		f := NewFleet(nil, &strings.Builder{}, nil, Form{}, zerolog.Nop())
		f.Begin(len(tc.codes))
		for i, code := range tc.codes {
			r := PeerResult{Name: "x:in", Line: i + 1}
			if code != 0 {
				r.Err = exit.Errorf(code, "", "failed")
			}
			f.Ended(&r)
		}
		if err := f.Total(time.Second); exit.Code(err) != tc.want {
			t.Errorf("%v: %v has the code %d, want %d", tc.codes, err, exit.Code(err), tc.want)
		}
	}
}

func TestFleetProgress(t *testing.T) {
	var terminal strings.Builder
	screen := &Screen{out: &terminal, width: func() int { return 80 }}
	f := NewFleet(nil, screen, screen, Form{}, zerolog.Nop())
	f.Begin(20)
	f.moves(4, 1<<20)
	f.moves(5, 2<<20)
	if want := eraseLine + "0/20 peers  2 running  3.0 MiB"; !strings.HasSuffix(terminal.String(), want) {
		t.Errorf("%q", terminal.String())
	}
	f.Ended(&PeerResult{Name: "x:in", Line: 4, Err: errTest})
	if want := eraseLine + "1/20 peers  1 running, 1 failed  2.0 MiB"; !strings.HasSuffix(terminal.String(), want) {
		t.Errorf("%q", terminal.String())
	}
	_ = f.Total(0)
	if screen.line != "" {
		t.Errorf("%q is left", screen.line)
	}
}

func TestPeerReporter(t *testing.T) {
	sum, err := digest.ParseSum("crc32c:1f0e22c4")
	if err != nil {
		t.Fatal(err)
	}
	var out, log strings.Builder
	f := NewFleet(io.Discard, &out, nil, Form{}, zerolog.Nop())
	r := f.Peer("x:in", 3, zerolog.New(&log))
	r.Begin(report.Path{})
	r.Progress(job.Sample{Moved: 5})
	r.Event(job.Warned{Text: "careful"})
	r.Asked(job.Sample{}, nil)
	err = r.Result(job.Summary{Sum: sum})
	if err != nil || !strings.HasPrefix(out.String(), "run   x:in: ") || f.bytes() != 5 || r.Sum != sum ||
		!strings.Contains(log.String(), "careful") {
		t.Errorf("printed %s, logged %s, moved %d, sum %s, %v", &out, &log, f.bytes(), r.Sum, err)
	}
	r.Begin(report.Path{})
	r.Progress(job.Sample{Moved: 2})
	r.SourceFailed(errTest)
	if f.bytes() != 7 || r.Sum != (digest.Sum{}) || len(r.Causes) != 1 {
		t.Errorf("moved %d, sum %s, causes %v", f.bytes(), r.Sum, r.Causes)
	}
}
