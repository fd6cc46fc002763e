//go:build cgo

package doca_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The software device reports why a server refuses a client, while that server runs.
func TestRefusedClient(t *testing.T) {
	s := newFastStage(t, doca.Options{SoftLimits: "max_clients=1"})
	second := must(s.host.NewClient("fast", doca.ChannelConfig{}))(t)
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
