//go:build !ucx || !cgo

package network

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// A path of UCX says what is missing, and tls needs nothing.
func TestPathsWithoutUCX(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	memory := both.clientControl.Memory(both.client, Settings{})
	_, err := memory.Paths(job.OnlyMessages)
	if !errors.Is(err, job.ErrCapability) || !errors.Is(err, ucx.ErrUnavailable) ||
		!strings.Contains(err.Error(), "libucx-dev") {
		t.Errorf("am: %v", err)
	}
	if got, err := memory.Paths(job.AnyPath); err != nil || got != job.PathsOf(wire.PathTLS) {
		t.Errorf("any path: %b, %v", got, err)
	}
}
