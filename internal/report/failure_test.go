package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/service"
)

func onHost(err error) error { return &SideError{Side: wire.Host, Err: err} }
func onDPU(err error) error  { return &SideError{Side: wire.DPU, Err: err} }

func aborted(code wire.AbortCode, text string) error {
	return &wire.Error{State: native.Transferring, Err: &native.PeerAborted{Code: code, Text: text}}
}

// TestReportedLines covers failures that no script can produce.
func TestReportedLines(t *testing.T) {
	peerFailed := &wire.Error{State: reference.AwaitStatus, Message: wire.TypeStatus,
		Err: wire.ErrPeerFailed}
	turned := &wire.Error{State: reference.AwaitDirection, Err: wire.ErrPeerLost}
	lost := &wire.Error{State: reference.AwaitStatus, Err: wire.ErrPeerLost}
	strange := &wire.Error{State: reference.AwaitStatus, Message: wire.TypeStatus,
		Err: wire.ErrMalformed}
	unsent := fmt.Errorf("%w (%w)", comch.ErrPeerLost, doca.ErrDisconnected)
	taken := &doca.Error{Op: "doca_ctx_start", Code: doca.CodeAlreadyExist, Detail: "another server has this name"}
	cases := []struct {
		name string
		err  error
		code int
		line string
	}{
		{"the DPU fails", onHost(peerFailed), 1, "host: the DPU reported a failure: see its error message"},
		{"the host fails", onDPU(peerFailed), 1, "DPU: the host reported a failure: see its error message"},
		{"and something more", errors.Join(onDPU(peerFailed), errors.New("close")), 1,
			"DPU: the host reported a failure: see its error message"},
		{"the host fails last",
			onDPU(job.NewError(job.ErrHostFailed, peerFailed, "see its error message",
				"the host failed after the copy, so it does not have the file")), 1,
			"DPU: the host failed after the copy, so it does not have the file: see its error message"},
		{"the DPU is lost", onHost(lost), 7,
			"host: the connection to the DPU was lost before the copy ended: check the other side and copy again"},
		{"the host is lost", onDPU(turned), 7,
			"DPU: the connection to the host was lost before the copy ended: check the other side and copy again"},
		{"the host is lost as it is written to", onDPU(unsent), 7,
			"DPU: the connection to the host was lost before the copy ended: check the other side and copy again"},
		{"turned away", onHost(fmt.Errorf("%w (3 times within 1s)", comch.ErrTurnedAway)), 7,
			"host: the DPU closed the connection without sending anything (3 times within 1s): " +
				"it may be serving another host: raise --wait, or check the DPU"},
		{"turned away by a daemon", onHost(fmt.Errorf("%w (3 times within 1s)", service.ErrTurnedAway)), 7,
			"host: the daemon closed the connection without sending anything (3 times within 1s): too many others " +
				"may be connecting, or it is shutting down: raise --wait, or see its log"},
		{"misbehaviour keeps its details", onHost(strange), 11, "host: negotiation in state await-status at STATUS: " +
			"malformed message: run a supported release of dma-copy or doca_dma_copy on the other side"},
		{"misbehaviour between commands", onHost(exit.Errorf(exit.Protocol, ping.SameRelease,
			"the results of the DPU: %w", wire.ErrMalformed)), 11,
			"host: the results of the DPU: malformed message: run the same release of dma-copy on both sides"},
		{"the name is taken", onDPU(fmt.Errorf("another dma-copy serves: %w", taken)), 6,
			"DPU: another dma-copy serves: raise --wait, or stop it"},
		{"the peer says why", onHost(aborted(wire.AbortTarget, "cannot hold x: free some space")), 5,
			"host: the DPU aborted: cannot hold x: free some space"},
		{"the peer says something ugly", onDPU(aborted(wire.AbortFailure, "a\n\x1b[2Jb\u202e")), 1,
			`DPU: the host aborted: a\n\x1b[2Jb\u202e`},
		{"the peer says nothing", onDPU(aborted(wire.AbortProtocol, "")), 11,
			"DPU: the host aborted without a reason"},
		{"the outcome is unknown",
			onHost(&wire.Error{State: native.Finishing, Err: wire.ErrOutcomeUnknown}), 7,
			"host: transfer outcome unknown: the DPU did not confirm the commit: " +
				"compare both files (dma-copy verify)"},
		{"no version in common", onHost(&wire.Error{Err: wire.ErrVersion,
			Detail: "the host supports version 1, the DPU version 2"}), 11,
			"host: no common version of the native protocol: the host supports version 1, the DPU version 2: " +
				"run releases of dma-copy with a common protocol version on both sides"},
		{"too long", onDPU(exit.Errorf(exit.Limit, "raise --max-duration", "stopped by --max-duration after 1s")), 14,
			"DPU: stopped by --max-duration after 1s: raise --max-duration"},
		{"stopped, with a part",
			&SideError{Side: wire.DPU, Err: exit.Interrupted{Signal: syscall.SIGINT}, Kept: 3 << 20}, 130,
			"DPU: stopped by SIGINT; 3.0 MiB are kept: run the same command to resume"},
		{"stopped, and what it had is gone", &SideError{
			Side: wire.DPU, Err: exit.Interrupted{Signal: syscall.SIGINT},
			Lost: "the partial file was removed or replaced",
		}, 130, "DPU: stopped by SIGINT; nothing is kept: the partial file was removed or replaced"},
		{"stopped, as the sender",
			&SideError{Side: wire.Host, Err: exit.Interrupted{Signal: syscall.SIGTERM}, Resumable: true}, 143,
			"host: stopped by SIGTERM; run the same command to resume from what the receiver kept"},
		{"stopped, in a tree",
			&SideError{Side: wire.DPU, Err: exit.Interrupted{Signal: syscall.SIGTERM}, Partly: true}, 143,
			"DPU: stopped by SIGTERM; run the same command to copy the rest"},
		{"stopped in a large file of a tree", &SideError{
			Side: wire.DPU, Err: exit.Interrupted{Signal: syscall.SIGTERM}, Kept: 3 << 20, Partly: true,
		}, 143, "DPU: stopped by SIGTERM; 3.0 MiB are kept: run the same command to resume"},
		{"refused, in a tree", &SideError{Side: wire.DPU, Err: job.ErrTarget, Partly: true}, 5, "DPU: target"},
		{"changed, as the sender", &SideError{Side: wire.Host, Err: job.ErrSourceChanged, Resumable: true}, 10,
			"host: source changed"},
		{"no such device", &doca.NotFoundError{Kind: "device", Name: "x", Available: []string{"a", "b"}}, 6,
			"no device x: there are a and b: choose one of them with -p"},
		{"no such representor",
			onDPU(&doca.NotFoundError{Kind: "representor", Name: "x", Available: []string{"a", "b"}}), 6,
			"DPU: no representor x: there are a and b: choose one of them with -r"},
		{"nothing to name", onDPU(&doca.NotFoundError{Kind: "representor", Name: "x"}), 6,
			`DPU: no representor x: there are none: run "dma-copy doctor" to find the cause`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var said strings.Builder
			WriteError(&said, tc.err)
			if got, want := said.String(), "dma-copy: "+tc.line+"\n"; got != want {
				t.Errorf("said\n %swant\n %s", got, want)
			}
			if code := exit.Code(tc.err); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

// The line of a defect is followed by its stack, and the exit code is not that of a call that hangs.
func TestDefectIsPrintedWithItsStack(t *testing.T) {
	var said strings.Builder
	defect := &job.Defect{Value: "index out of range", Stack: []byte("goroutine 1 [running]:\n")}
	err := &SideError{Side: wire.DPU, Err: fmt.Errorf("copying: %w", defect)}
	WriteError(&said, err)
	want := "dma-copy: DPU: copying: internal error: index out of range: report it, with what follows\n" +
		"goroutine 1 [running]:\n"
	if said.String() != want {
		t.Errorf("said\n %swant\n %s", said.String(), want)
	}
	if code := exit.Code(err); code != exit.Failure {
		t.Errorf("exit code %d", code)
	}
}

// The full error is logged if the line rewords it, and not otherwise.
func TestRewordedFailuresAreLogged(t *testing.T) {
	reworded := onDPU(&wire.Error{State: reference.Copying, Err: wire.ErrPeerLost})
	var out bytes.Buffer
	log := zerolog.New(&out)
	LogReworded(log, nil)
	LogReworded(log.Level(zerolog.InfoLevel), reworded)
	LogReworded(log, onDPU(comch.ErrPeerAbsent))
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
	LogReworded(log, errors.Join(reworded, errors.New("close")))
	for _, part := range []string{`"debug"`, "in state copying", "close"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("logged %s without %s", out.String(), part)
		}
	}
}

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
