package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
)

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
