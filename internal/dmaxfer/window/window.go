package window

import (
	"context"
	"errors"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Memory is what a transfer needs of a device or of a network connection. It is called by one goroutine at a time.
type Memory interface {
	// Paths returns those that this side can use and the user permits, at least one. It fails with job.ErrCapability if
	// there is none, and with job.ErrSettings if the choice is for another kind of connection.
	Paths(choice job.PathChoice) (job.Paths, error)

	// Check refuses a chunk, in bytes, or a depth that is beyond its limits, with job.ErrSettings; 0 stands for the
	// default.
	Check(chunk int64, depth int) error

	// Traits returns those that all of the paths have.
	Traits(p job.Paths) Traits

	// Expose makes the window, on the side of Plan.WindowOwner, with its Address and Descriptor. ctx ends the wait for
	// the device.
	Expose(ctx context.Context, l Layout) (*Window, error)

	// Open opens the peer's window. ctx ends the wait for the device. An error that is ErrUnreachable, or comes from a
	// device that does not permit or support it, means that the window is not within reach, and another attempt would
	// fail.
	Open(ctx context.Context, l Layout, w native.Window) (*Window, error)
}

// Buffering is a Memory whose windows have more memory than their Layout says.
type Buffering interface {
	// Overhead returns how many bytes a window has beside its slots and buffers. peer is the window that Open is called
	// with, in which the peer chooses some of that; the zero value stands for Expose.
	Overhead(l Layout, peer native.Window) int64
}

// ErrUnreachable means that the window of the peer is not within reach.
var ErrUnreachable = errors.New("the peer's memory is not within reach")

// Traits are what the sizes of a window are chosen by.
type Traits struct {
	Largest   int64 // bytes that the device copies at once; 0 if it does not say
	Deepest   int64 // slots that it can have in flight; 0 if a lane can wait for it
	Lanes     int64 // of one connection; 0 if it does not say
	Offloaded bool  // it copies with another processor than this one, and other caches

	Sizes Sizes // that suit it; the zero value leaves them to Offloaded
}

// Sizes are the sizes of a window, where this side chooses them.
type Sizes struct {
	Smallest, Largest int64 // bytes of a chunk of a small and of a large file: powers of two
	Chunks            int64 // that a file has at least, unless they would be smaller than Smallest
	Depth             int64 // slots for a large file
}

// Layout is how a side arranges its memory for a transfer.
type Layout struct {
	Path    wire.Path
	Sends   bool
	Digest  digest.Algorithm
	Chunk   int64 // bytes of a slot
	Depth   int   // slots of the window
	Lanes   int
	Buffers int // of each lane of a receiver
}

// Length returns the length of the window in bytes.
func (l Layout) Length() int64 { return int64(l.Depth) * l.Chunk }

// Window is this side's end of the window: memory, and the engines between it and the window itself.
type Window struct {
	Slots   pump.Slots     // of a sender, one for each of the window's
	Buffers []pump.Slots   // of a receiver, by lane
	Engines []pump.Engine  // by lane; none where the slots are the window
	InPlace []pump.InPlace // of a receiver, by lane; nil unless content arrives in Buffers

	Address    uint64 // how the peer opens the window, of its owner
	Descriptor []byte

	// Transport is what carries the content, for the user: "rc_mlx5/mlx5_0:1". It is empty if the path says it all, and
	// of the window's owner, which learns it from the peer.
	Transport string

	// Carried returns how many bytes of content this side has sent or received so far, including incomplete chunks, so
	// that a chunk which a slow network delays is known to make progress. Any goroutine may call it. It is nil for a
	// window that does not count them.
	Carried func() int64

	// Ended reports whether the window cannot or should not serve another transfer, for example because the peer has
	// closed its end, or its keys are to be replaced. It is called between two transfers, and nil for a window that
	// does not end by itself.
	Ended func() bool

	clean  bool
	opened []io.Closer
}

// Clean says that the transfer has left nothing in the window, so that it can serve another one. It is called before
// Close.
func (w *Window) Clean() { w.clean = true }

// Lend returns a window with the same memory and engines. Its Close closes only what is added to it.
func (w *Window) Lend() *Window {
	lent := *w
	lent.clean, lent.opened = false, nil
	return &lent
}

// AddCloser adds something that Close closes before everything that was added earlier.
func (w *Window) AddCloser(c io.Closer) { w.opened = append(w.opened, c) }

// Close releases everything, the engines first: nothing may be released while it copies. So what cannot be closed keeps
// what was added before it; another call tries again.
func (w *Window) Close() error {
	for last := len(w.opened) - 1; last >= 0; last-- {
		if err := w.opened[last].Close(); err != nil {
			return err
		}
		w.opened = w.opened[:last]
	}
	return nil
}

// NewHostWindow arranges the end of a side that does not move anything itself around the memory of the window: a
// host, or a side on PathRMA, the sender or a receiver that has mapped the window. One that receives copies what the
// other side may write before it looks at it.
func NewHostWindow(l Layout, memory []byte) *Window {
	if l.Sends {
		return &Window{Slots: pump.NewSlots(memory, l.Chunk)}
	}
	w := &Window{}
	for range l.Lanes {
		private := make([]byte, int64(l.Buffers)*l.Chunk)
		w.Buffers = append(w.Buffers, pump.NewSlots(private, l.Chunk))
		w.Engines = append(w.Engines, pump.NewCopier(memory, private, l.Buffers, l.Digest))
	}
	return w
}
