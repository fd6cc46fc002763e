package output

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
)

// daemonPath is the path of a copy with a daemon whose key is trusted.
var daemonPath = Path{
	Side: wire.Host, Driver: "soft 1", File: "x", Remote: "dpu:in/x",
	Peer: &Peer{Key: "dpu", Fingerprint: "dma-copy-v1:abc", Authenticated: true},
}

func TestSummaryOfACopyWithADaemon(t *testing.T) {
	sum, _ := digest.ParseSum("crc32c:1f0e22c4")
	done := job.Summary{Sent: true, Path: "x", Size: 1 << 20, Elapsed: time.Second, Protocol: wire.Native,
		Sum: sum, Durability: wire.DurabilityFull}
	received, streamed := done, done
	received.Sent = false
	streamed.Sent, streamed.Path = false, option.Stream
	nobody := daemonPath
	nobody.Peer = &Peer{Fingerprint: "dma-copy-v1:abc"}
	for name, tc := range map[string]struct {
		summary job.Summary
		path    Path
		want    []string
	}{
		"push":            {done, daemonPath, []string{"ok    sent x to dpu:in/x  1.0 MiB", "durable on the DPU"}},
		"pull":            {received, daemonPath, []string{"ok    received dpu:in/x as x  1.0 MiB", "durable here"}},
		"to stdout":       {streamed, daemonPath, []string{"ok    received dpu:in/x to standard output  1.0 MiB"}},
		"who":             {done, daemonPath, []string{"\npeer  dpu: authenticated, not encrypted\n"}},
		"nobody":          {done, nobody, []string{"\npeer  not authenticated, not encrypted (--auth none)\n"}},
		"a file for both": {done, treePath, []string{"ok    sent x  1.0 MiB"}},
	} {
		var out bytes.Buffer
		writeSummary(&out, tc.summary, job.Planned{}, tc.path, true)
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: printed\n%s\nlacks %q", name, out.String(), want)
			}
		}
		if tc.path.Peer == nil && strings.Contains(out.String(), "peer") {
			t.Errorf("%s: a peer in\n%s", name, out.String())
		}
	}
	unnamed := Path{Peer: &Peer{Fingerprint: "dma-copy-v1:abc", Authenticated: true}}
	if got := unnamed.peerTitle(); got != "dma-copy-v1:abc: authenticated, not encrypted" {
		t.Errorf("a key without a name: %q", got)
	}
}

func TestTotal(t *testing.T) {
	var total Total
	total.Add(job.Summary{Size: 3 << 20}, nil)
	total.Add(job.Summary{Size: 5, UpToDate: true}, nil)
	total.Add(job.Summary{Tree: &job.TreeSummary{Files: 7, Bytes: 1 << 20}}, job.ErrSomeFailed)
	total.Add(job.Summary{}, job.ErrTarget)
	total.Elapsed = 1500 * time.Millisecond
	if got, want := totalText(total, "source", 0), "4 sources (2 failed), 8 files copied, 4.0 MiB in 1.5s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !total.Worthy() || (&Total{Sources: 1}).Worthy() || !(&Total{Sources: 1, Deletes: true}).Worthy() {
		t.Error("a total is worthy of several sources, or of deletions")
	}
	total = Total{Elapsed: time.Second}
	total.Add(job.Summary{DryRun: true, Tree: &job.TreeSummary{Files: 2}}, nil)
	total.Delete(Deletion{})
	total.Delete(Deletion{})
	total.Delete(Deletion{Err: job.ErrTarget})
	want := "1 source, 2 files to copy, 0 B, 2 entries to delete, 1 entry not deleted in 1s; nothing was changed"
	if got := totalText(total, "source", 0); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDeletionsAsText(t *testing.T) {
	for name, tc := range map[string]struct {
		s              Form
		d              Deletion
		stdout, stderr string
	}{
		"a directory": {Form{}, Deletion{Path: "a\nb", Kind: wire.EntryDirectory}, "", "deleted a\\nb/\n"},
		"quiet":       {Form{Quiet: true}, Deletion{Path: "a"}, "", ""},
		"a dry run":   {Form{DryRun: true}, Deletion{Path: "a"}, "delete     -                     -  a\n", ""},
		"a failure, even if quiet": {Form{Quiet: true},
			Deletion{Path: "a", Err: job.NewError(job.ErrTarget, nil, "look", "cannot remove a")}, "",
			"dma-copy: a: cannot remove a"},
	} {
		var stdout, stderr bytes.Buffer
		r := newText(&stdout, &stderr, nil, tc.s, zerolog.Nop())
		r.Deleted(tc.d)
		if err := r.endPlan(); err != nil {
			t.Fatal(err)
		}
		unexpected := tc.stderr == "" && stderr.Len() > 0
		if stdout.String() != tc.stdout || !strings.HasPrefix(stderr.String(), tc.stderr) || unexpected {
			t.Errorf("%s: printed %q and %q", name, stdout.String(), stderr.String())
		}
	}
}

// Where all sources fail for one reason, that is the result; otherwise some have failed.
func TestSomeSources(t *testing.T) {
	for name, tc := range map[string]struct {
		tried    int
		failures []error
		code     int
	}{
		"none":        {2, nil, exit.OK},
		"some":        {2, []error{job.ErrTarget}, exit.SomeFailed},
		"all alike":   {2, []error{job.ErrTarget, fmt.Errorf("x: %w", job.ErrTarget)}, exit.Target},
		"all, mixed":  {2, []error{job.ErrTarget, job.ErrSource}, exit.SomeFailed},
		"all but one": {3, []error{job.ErrTarget, job.ErrTarget}, exit.SomeFailed},
	} {
		if got := exit.Code(SomeSources(tc.tried, tc.failures)); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.code)
		}
	}
}

func TestUnfinished(t *testing.T) {
	for err, want := range map[error]bool{
		job.ErrTarget: false, job.ErrSource: false, service.ErrRefused: false, job.ErrLimit: false, job.ErrIdle: true,
		job.ErrHung: true, error(exit.Interrupted{Signal: 15}): true,
	} {
		if Unfinished(err) != want {
			t.Errorf("%v ends the command: %t, want %t", err, !want, want)
		}
	}
}

func TestOutcomesOfTheService(t *testing.T) {
	refusal := &protocol.Refusal{Code: wire.AbortTarget, Text: "no\x1bspace"}
	for _, tc := range []struct {
		err  error
		code int
		want string
	}{
		{refusal, exit.Target, `host: the daemon on the DPU refused: no\x1bspace`},
		{&protocol.Refusal{Code: wire.AbortRefused}, exit.Refused,
			"host: the daemon on the DPU refused without a reason"},
		{&secure.UntrustedError{Key: identity.Public{}, Err: errors.New("it is not trusted here")}, exit.Refused,
			"host: the key of the peer is refused: it is not trusted here (its words: "},
		{secure.ErrRefused, exit.Refused,
			"host: the peer does not trust the key of this side: run dma-copy keys trust"},
		{secure.ErrTimeout, exit.Peer, "host: timeout: the peer did not authenticate: check the other side"},
		{secure.ErrHandshake, exit.Protocol, "host: the peer did not authenticate: run dma-copy of the same release"},
		{service.ErrRefused, exit.Refused, "host: refused"},
		{service.ErrDraining, exit.Peer, "host: the daemon is shutting down: start it again"},
		{&wire.Error{Err: protocol.ErrVersion, Detail: "the command supports 2, the daemon 1"},
			exit.Protocol,
			"host: no common version of the service protocol: the command supports 2, the daemon 1: run releases of"},
		{service.ErrBusy, exit.Peer, "host: timeout: the daemon served other commands until the end of --wait: raise"},
	} {
		err := &SideError{Side: wire.Host, Err: fmt.Errorf("%w", tc.err)}
		if got := exit.Code(err); got != tc.code {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.code)
		}
		if got := Sentence(err); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

// The loss of the connection does not speak of a copy where there is none.
func TestLostDuringARequest(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{comch.ErrPeerLost, "host: the connection to the DPU was lost before the list ended: check the other side"},
		{&wire.Error{Err: wire.ErrPeerLost}, "host: the connection to the DPU was lost before the list"},
		{service.ErrDraining, "host: the daemon is shutting down; close: start it again"},
	} {
		err := InRequest("list", errors.Join(onHost(tc.err), errors.New("close")))
		if got := Sentence(err); !strings.HasPrefix(got, tc.want) || exit.Code(err) != exit.Peer {
			t.Errorf("%v: %q (exit code %d), want %q", tc.err, got, exit.Code(err), tc.want)
		}
	}
	if err := InRequest("list", nil); err != nil {
		t.Error(err)
	}
}

// An abort by a daemon is a refusal as long as nothing was copied, and never one by another peer.
func TestAbortByADaemon(t *testing.T) {
	aborted := &wire.Error{Err: &native.PeerAborted{Code: wire.AbortSource, Text: "x exists and differs"}}
	for _, tc := range []struct {
		path  Path
		moved int64
		want  string
	}{
		{Path{Side: wire.Host, Remote: "dpu:in/x"}, 0, "host: the daemon on the DPU refused: x exists and differs"},
		{Path{Side: wire.Host, Remote: "dpu:in/x"}, 5, "host: the DPU aborted: x exists and differs"},
		{Path{Side: wire.Host, File: "x"}, 0, "host: the DPU aborted: x exists and differs"},
	} {
		m := NewMonitor(&recorder{}, Asked{})
		m.Begin(tc.path)
		m.Progress.ChunkMoved(tc.moved)
		err := m.Conclude(job.Summary{}, aborted)
		if got := Sentence(err); got != tc.want || exit.Code(err) != exit.Source {
			t.Errorf("moved %d: %q (exit code %d), want %q", tc.moved, got, exit.Code(err), tc.want)
		}
	}
}

// With a daemon a list of paths has an effect on either side, unless the source is a file.
func TestListForADaemon(t *testing.T) {
	for planned, want := range map[job.Planned]string{
		{Tree: true}: "", {Sent: true, Tree: true}: "", {}: "the source is a file, where --files-from has no effect",
	} {
		reporter := &recorder{}
		m := NewMonitor(reporter, Asked{List: true})
		m.Begin(Path{Remote: "dpu:in/x"})
		m.Event(planned)
		if got := strings.Join(reporter.warnings, "; "); got != want {
			t.Errorf("%+v: warned %q, want %q", planned, got, want)
		}
	}
}
