package window

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// KeptMemory is a Memory whose window, import, buffers, engines, producers and consumers outlive a transfer, and are
// used again by the next one over the same connection. All of it is fresh memory of zeros, which no other connection
// has used or will use. A transfer with another Layout, or with another window of the peer, replaces what is kept, and
// so does the one after a transfer that failed: copies or messages of that may still be under way. It serves one
// transfer at a time; Close may be called at any time.
type KeptMemory struct {
	Memory // opens what is not kept

	mu      sync.Mutex
	window  *keptWindow // nil: none
	lent    bool        // a transfer uses the window, or opens it
	stale   bool        // the window is to be released; it remains while the device does not let go of it
	closed  bool
	refused job.Paths // whose window is not within reach
}

// keptWindow is one side's end of a window, and what it was opened for.
type keptWindow struct {
	*Window
	layout Layout
	of     native.Window // the peer's window; zero for its owner
}

// ErrMemoryInUse means that a transfer has not ended yet.
var ErrMemoryInUse = errors.New("the window is still used by a transfer")

// errMemoryClosed is a transfer that begins after Close.
var errMemoryClosed = errors.New("internal error: the memory of the connection is closed")

// Keep returns a KeptMemory of what another Memory opens.
func Keep(m Memory) *KeptMemory { return &KeptMemory{Memory: m} }

// Expose implements Memory.
func (k *KeptMemory) Expose(ctx context.Context, l Layout) (*Window, error) {
	return k.lend(l, native.Window{}, func() (*Window, error) { return k.Memory.Expose(ctx, l) })
}

// Open implements Memory.
func (k *KeptMemory) Open(ctx context.Context, l Layout, of native.Window) (*Window, error) {
	of.Descriptor = slices.Clone(of.Descriptor)
	w, err := k.lend(l, of, func() (*Window, error) { return k.Memory.Open(ctx, l, of) })
	if err != nil && IsOutOfReach(err) {
		k.mu.Lock()
		k.refused |= job.PathsOf(l.Path)
		k.mu.Unlock()
	}
	return w, err
}

// IsOutOfReach reports whether the peer's window is not within reach, such as memory of a host that the device may not
// import: another attempt would fail, too.
func IsOutOfReach(err error) bool {
	return errors.Is(err, doca.CodeNotPermitted) || errors.Is(err, doca.CodeNotSupported) ||
		errors.Is(err, ErrUnreachable)
}

// Paths implements Memory. It leaves out a path whose window was not within reach of an earlier transfer, if there is
// another one instead.
func (k *KeptMemory) Paths(choice job.PathChoice) (job.Paths, error) {
	p, err := k.Memory.Paths(choice)
	k.mu.Lock()
	defer k.mu.Unlock()
	if path, mayFallBack := p.MayFallBack(); mayFallBack && k.refused.Has(path) {
		p = p.Without(path)
	}
	return p, err
}

// lend returns what is kept, if it is what the transfer needs, and otherwise what open returns.
func (k *KeptMemory) lend(l Layout, of native.Window, open func() (*Window, error)) (*Window, error) {
	w, err := k.take(l, of)
	if err != nil {
		return nil, err
	}
	if w == nil {
		opened, err := open()
		k.mu.Lock()
		defer k.mu.Unlock()
		if err != nil {
			k.lent = false
			return nil, err
		}
		w = &keptWindow{opened, l, of}
		k.window = w
	}
	lease := w.Lend()
	lease.AddCloser(&windowLease{memory: k, lease: lease})
	return lease, nil
}

// take begins the use by a transfer, and returns what is kept if it serves. Otherwise it releases that first, and
// returns nil: a device that does not end its copies must not be given more and more memory.
func (k *KeptMemory) take(l Layout, of native.Window) (*keptWindow, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return nil, errMemoryClosed
	case k.lent:
		return nil, ErrMemoryInUse
	}
	k.stale = k.stale || k.window != nil && !k.window.serves(l, of)
	if err := k.releaseStale(); err != nil {
		return nil, err
	}
	k.lent = true
	return k.window, nil
}

func (w *keptWindow) serves(l Layout, of native.Window) bool {
	if w.Ended != nil && w.Ended() {
		return false
	}
	return w.layout == l && w.of.Address == of.Address && w.of.Length == of.Length &&
		bytes.Equal(w.of.Descriptor, of.Descriptor)
}

// windowLease is the use of a window by one transfer, which Close ends. If the transfer has left it as it was, it is
// kept.
type windowLease struct {
	memory *KeptMemory
	lease  *Window
	ended  bool // nothing but the release is missing
}

// Close implements io.Closer. Called again after a failure it continues.
func (l *windowLease) Close() error {
	k := l.memory
	k.mu.Lock()
	defer k.mu.Unlock()
	if !l.ended {
		l.ended, k.lent = true, false
		k.stale = !l.lease.clean || !k.window.idle() || k.closed
	}
	return k.releaseStale()
}

// idle reports whether no engine has anything to do.
func (w *keptWindow) idle() bool {
	return !slices.ContainsFunc(w.Engines, func(e pump.Engine) bool { return e.Inflight() > 0 })
}

// releaseStale releases what is not kept any more. A device may take seconds for it. The caller has locked mu.
func (k *KeptMemory) releaseStale() error {
	if !k.stale {
		return nil
	}
	if err := k.window.Close(); err != nil {
		return err
	}
	k.window, k.stale = nil, false
	return nil
}

// Close releases what is kept. It is called after the last transfer and before the connection is closed. It fails with
// ErrMemoryInUse while a transfer uses the memory, which is then released when the transfer ends. Memory that the
// device still uses stays as it is; Close can be called again, and returns nil when everything has been released.
func (k *KeptMemory) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.lent {
		return ErrMemoryInUse
	}
	k.stale = k.window != nil
	return k.releaseStale()
}
