package window

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// localMemory is the Memory of both sides of a transfer within one process, on PathDMA. The host sends. The DPU's
// engines copy from the window itself: nothing is exported or imported.
type localMemory struct {
	deviceMemory

	mu     sync.Mutex
	window *sharedRegion // nil: not exposed yet
}

// NewLocalMemory returns the Memory for both sides of one transfer within this process, from the host to the DPU. It is
// safe for concurrent use by the two.
func NewLocalMemory(device *doca.Device) Memory {
	return &localMemory{deviceMemory: deviceMemory{device: device, side: wire.DPU}}
}

// localDescriptor stands in for the export descriptor that the protocol needs.
var localDescriptor = []byte("local")

// Expose implements Memory.
func (m *localMemory) Expose(_ context.Context, l Layout) (*Window, error) {
	region, err := m.device.Alloc(l.Length(), doca.LocalRead)
	if err != nil {
		return nil, fmt.Errorf("registering the window: %w", err)
	}
	shared := &sharedRegion{region: region, users: 1}
	m.mu.Lock()
	m.window = shared
	m.mu.Unlock()
	w := NewHostWindow(l, region.Bytes())
	w.Address, w.Descriptor = region.Address(), localDescriptor
	w.AddCloser(shared)
	return w, nil
}

// errWindowClosed ends a receiver whose sender has ended before: why is for the sender to say.
var errWindowClosed = fmt.Errorf("%w: the window is closed", comch.ErrPeerLost)

// Open implements Memory.
func (m *localMemory) Open(_ context.Context, l Layout, _ native.Window) (*Window, error) {
	m.mu.Lock()
	shared := m.window
	m.mu.Unlock()
	if shared == nil || !shared.acquire() {
		return nil, errWindowClosed
	}
	w := &Window{}
	w.AddCloser(shared)
	if err := m.openReceiver(w, l, shared.region); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// sharedRegion is memory that both sides use. The last one that closes it ends the registration.
type sharedRegion struct {
	region *doca.Region

	mu    sync.Mutex
	users int
}

// acquire adds a user. It reports false if the region is closed.
func (s *sharedRegion) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

// Close implements io.Closer, for one user.
func (s *sharedRegion) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 1 {
		if err := s.region.Close(); err != nil {
			return err
		}
	}
	s.users--
	return nil
}
