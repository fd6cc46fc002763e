//go:build cgo

package doca_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// The software device reports why a server refuses a client, while that server runs.
func TestRefusedClient(t *testing.T) {
	s := newFastStage(t, doca.Options{SoftLimits: "max_clients=1"})
	second := must(s.host.NewClient("fast", doca.ChannelConfig{Polled: true}))(t)
	closeAtEnd(t, second)
	s.mustBeRefused(second, doca.CodeFull)

	small := must(s.dpu.Listen(s.representor, "small", doca.ChannelConfig{MaxMessage: 100}))(t)
	large := must(s.host.NewClient("small", doca.ChannelConfig{MaxMessage: 200}))(t)
	closeAtEnd(t, large)
	s.mustBeRefused(large, doca.CodeInvalidValue)
	s.check(small.Close())
	if _, err := large.Connect(s.ctx); !errors.Is(err, doca.ErrNoServer) {
		t.Errorf("the server is gone, and yet %v", err)
	}
}

func (s *fastStage) mustBeRefused(client *doca.Client, code doca.Code) {
	s.t.Helper()
	if _, err := client.Connect(s.ctx); !errors.Is(err, doca.ErrRefused) || !errors.Is(err, code) {
		s.t.Errorf("got %v, want a refusal with %v", err, code)
	}
}

// A client whose start fails with one of these codes has no server yet, whichever call returns it, and can be started
// again.
func TestStartWithoutServer(t *testing.T) {
	for _, code := range []doca.Code{
		doca.CodeConnectionAborted, doca.CodeConnectionReset, doca.CodeNotConnected, doca.CodeTimeOut,
	} {
		name := strings.TrimPrefix(code.Error(), "DOCA_ERROR_")
		for _, call := range []string{"doca_ctx_start:2", "doca_comch_client_get_connection:1"} {
			t.Run(call+" "+name, func(t *testing.T) {
				t.Setenv("DMA_COPY_SOFT_FAULTS", "refuse="+call+":"+name)
				s := docatest.OpenSides(t, "")
				server := must(s.DPU.Listen(s.OpenRepresentor(t), "here", doca.ChannelConfig{}))(t)
				closeAtEnd(t, server)
				client := must(s.Host.NewClient("here", doca.ChannelConfig{}))(t)
				closeAtEnd(t, client)
				if _, err := client.Connect(t.Context()); !errors.Is(err, doca.ErrNoServer) || !errors.Is(err, code) {
					t.Errorf("got %v, want no server and %v", err, code)
				}
				if _, err := client.Connect(t.Context()); err != nil {
					t.Errorf("the second start: %v", err)
				}
			})
		}
	}
}
