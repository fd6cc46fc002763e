package native

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// KeptMemory is a Memory whose window, import, buffers, engines, producers and consumers outlive a transfer, and are
// used again by the next one over the same connection. All of it is fresh memory of zeros, which no other connection
// has used or will use. What is kept for each direction is separate, so that a connection may alternate between them. A
// transfer with another Layout, or with another window of the peer, replaces what its direction has, and so does the
// one after a transfer that failed: copies or messages of that may still be under way. It serves one transfer at a
// time; Close may be called at any time.
type KeptMemory struct {
	Memory // opens what is not kept

	mu      sync.Mutex
	kept    [2]*keptWindow // by direction; nil: none
	lent    bool           // a transfer uses what may be kept afterwards
	stuck   []*keptWindow  // to be released; remain while the device does not let go of them
	closed  bool
	refused job.Paths // whose window is not within reach
}

// Sparing is a Memory that can say whether there is enough for what is kept and not used.
type Sparing interface {
	// Ample reports whether a connection may keep a window for each direction. It may be called at any time.
	Ample() bool
}

// direction is the index of what is kept for transfers in which this side sends, or receives.
func (l Layout) direction() int {
	if l.Sends {
		return 1
	}
	return 0
}

// keptWindow is one side's end of a window, and what it was opened for.
type keptWindow struct {
	*Window
	layout Layout
	of     negotiate.Window // the peer's window; zero for its owner
}

// ErrMemoryInUse means that a transfer has not ended yet.
var ErrMemoryInUse = errors.New("the window is still used by a transfer")

// errMemoryClosed is a transfer that begins after Close.
var errMemoryClosed = errors.New("internal error: the memory of the connection is closed")

// NewKeptMemory returns the Memory of all transfers over one connection. conn is the connection of the device itself,
// which makes producers and consumers.
func NewKeptMemory(device *doca.Device, side negotiate.Side, conn comch.Conn) *KeptMemory {
	return Keep(NewMemory(device, side, conn))
}

// Keep returns a KeptMemory of what another Memory opens.
func Keep(m Memory) *KeptMemory { return &KeptMemory{Memory: m} }

// Expose implements Memory.
func (k *KeptMemory) Expose(ctx context.Context, l Layout) (*Window, error) {
	return k.lend(l, negotiate.Window{}, func() (*Window, error) { return k.Memory.Expose(ctx, l) })
}

// Open implements Memory.
func (k *KeptMemory) Open(ctx context.Context, l Layout, of negotiate.Window) (*Window, error) {
	of.Descriptor = slices.Clone(of.Descriptor)
	w, err := k.lend(l, of, func() (*Window, error) { return k.Memory.Open(ctx, l, of) })
	if err != nil && permanent(err) {
		k.mu.Lock()
		k.refused |= job.PathsOf(l.Path)
		k.mu.Unlock()
	}
	return w, err
}

// permanent reports whether the peer's window is not within reach, as that of a host whose memory the device may not
// import: another attempt would fail, too.
func permanent(err error) bool {
	return errors.Is(err, doca.CodeNotPermitted) || errors.Is(err, doca.CodeNotSupported) ||
		errors.Is(err, ErrUnreachable)
}

// Paths implements Memory. It leaves out a path whose window was not within reach of an earlier transfer, if there is
// another one instead.
func (k *KeptMemory) Paths(choice job.PathChoice) (job.Paths, error) {
	p, err := k.Memory.Paths(choice)
	k.mu.Lock()
	defer k.mu.Unlock()
	if path, fragile := p.Fragile(); fragile && k.refused.Has(path) {
		p = p.Without(path)
	}
	return p, err
}

// lend returns what is kept, if it is what the transfer needs, and otherwise what open returns.
func (k *KeptMemory) lend(l Layout, of negotiate.Window, open func() (*Window, error)) (*Window, error) {
	w, err := k.takeKept(l, of)
	if err != nil {
		return nil, err
	}
	if w == nil {
		w = &keptWindow{layout: l, of: of}
		if w.Window, err = open(); err != nil && k.dropOther(l) {
			w.Window, err = open()
		}
		if err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.lent = false
			return nil, err
		}
	}
	lease := w.Lend()
	lease.AddCloser(&windowLease{memory: k, window: w, lease: lease})
	return lease, nil
}

// dropOther releases what is kept for the other direction, which may be in the way of what a transfer needs. It reports
// whether there was anything.
func (k *KeptMemory) dropOther(l Layout) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.retireLocked(1-l.direction()) && k.releaseStuck() == nil
}

// retireLocked no longer keeps what a direction has, if anything; it is to be released. The caller has locked mu.
func (k *KeptMemory) retireLocked(direction int) bool {
	w := k.kept[direction]
	if w == nil {
		return false
	}
	k.stuck, k.kept[direction] = append(k.stuck, w), nil
	return true
}

// takeKept takes what is kept if it serves, and releases it otherwise; then it returns nil. What could not be released
// is to be released first: a device that does not end its copies must not be given more and more memory.
func (k *KeptMemory) takeKept(l Layout, of negotiate.Window) (*keptWindow, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return nil, errMemoryClosed
	case k.lent:
		return nil, ErrMemoryInUse
	}
	w := k.kept[l.direction()]
	if w != nil && !w.serves(l, of) {
		k.retireLocked(l.direction())
		w = nil
	}
	if err := k.releaseStuck(); err != nil {
		return nil, err
	}
	k.lent, k.kept[l.direction()] = true, nil
	return w, nil
}

func (w *keptWindow) serves(l Layout, of negotiate.Window) bool {
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
	window *keptWindow
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
		direction := l.window.layout.direction()
		if !l.lease.clean || !l.window.idle() || k.closed {
			k.stuck = append(k.stuck, l.window)
			return k.releaseStuck()
		}
		k.kept[direction] = l.window
		if s, is := k.Memory.(Sparing); is && !s.Ample() {
			k.retireLocked(1 - direction)
		}
	}
	return k.releaseStuck()
}

// idle reports whether no engine has anything to do.
func (w *keptWindow) idle() bool {
	for _, e := range w.Engines {
		if e.Inflight() > 0 {
			return false
		}
	}
	return true
}

// releaseStuck releases what is not kept any more. A device may take seconds for it. The caller has locked mu.
func (k *KeptMemory) releaseStuck() error {
	for len(k.stuck) > 0 {
		if err := k.stuck[0].Close(); err != nil {
			return err
		}
		k.stuck = k.stuck[1:]
	}
	return nil
}

// Close releases what is kept. It is called after the last transfer and before the connection is closed. It fails with
// ErrMemoryInUse while a transfer uses the memory, which is then released when the transfer ends. What the device still
// uses stays as it is; Close can be called again, and returns nil when everything has been released.
func (k *KeptMemory) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for direction := range k.kept {
		k.retireLocked(direction)
	}
	err := k.releaseStuck()
	if k.lent {
		return ErrMemoryInUse // what is still stuck is released with the rest
	}
	return err
}
