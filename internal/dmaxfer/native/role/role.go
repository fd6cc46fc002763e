package role

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Role is what a side does in the transfer: it is the sender or the receiver. The owner of the transfer calls it.
type Role interface {
	// Begin is called after the agreement.
	Begin(ctx context.Context) error

	// WindowOpened is called once this side's end of the window is open, and is the role's to close early.
	WindowOpened(ctx context.Context, w *window.Window) error

	// Handle does what a message of the peer asks of this role.
	Handle(ctx context.Context, step native.Step) error

	// Outbox returns what the lanes have for the peer, and Flush sends it; nil before there are lanes.
	Outbox() Outbox
	Flush(ctx context.Context) error

	// Grace returns how long heartbeats of the peer alone keep the transfer alive, with what the peer has to do now.
	Grace() time.Duration

	// Committing reports whether a receiver renames a target, which must not be interrupted. Committed reports whether
	// the receiver has the only file: on the sender, as far as the receiver has said.
	Committing() bool
	Committed() bool

	// Halt has a receiver commit nothing more, and waits for what it is just committing.
	Halt(ctx context.Context) error

	// Close ends the role; failed is why the transfer did, or nil. It returns what is kept for a later transfer.
	Close(failed error) (kept job.Kept, err error)

	// Abandon is Close while a call of a job has not returned. Everything that the call may use stays open. It may hang
	// itself.
	Abandon(failed error) (kept job.Kept)
}

// Outbox is the part of a pump.Batch that does not depend on what is in it.
type Outbox interface {
	Due() bool                // there is enough for a message
	Waiting() <-chan struct{} // delivers a token when a lane waits for that message
	Flush()                   // makes due what is there
	Len() int                 // items that are not taken yet
}

// Transfer is what a role has of the transfer that it belongs to.
type Transfer struct {
	Params  *Params
	Session *native.Session // the owner of the transfer uses it
	Link    Link
	Stats   *Stats
	Message []byte // reused for each message, by the owner of the transfer
}

// Link is how a role acts on its transfer.
type Link interface {
	// Send sends a message to the peer. The owner calls it.
	Send(ctx context.Context, message []byte) error

	// Run makes a call that may take long or hang in a goroutine, with ctx. The owner then makes the call that it
	// returns, unless the transfer has ended. The owner calls Run.
	Run(ctx context.Context, job func(ctx context.Context) Call)

	// Post has the owner make a call, unless the transfer has ended by then. It may be called by any goroutine.
	Post(call Call)

	// Code returns the exit code for an error, for the peer.
	Code(err error) wire.AbortCode

	// Poller lets the lanes exchange messages with the peer until ctx ends.
	Poller(ctx context.Context) pump.Poller
}

// Call is what the owner of a transfer does for a job or a lane. Its context is canceled when the transfer is
// interrupted or ends; an error ends the transfer.
type Call func(ctx context.Context) error

// Nothing is the Call after a job that leaves nothing to do.
func Nothing(context.Context) error { return nil }

// FailWith returns the Call that ends the transfer with an error.
func FailWith(err error) Call { return func(context.Context) error { return err } }

// Failed returns the error of an entry that the peer has failed.
func Failed(f native.Failure) error { return &native.PeerAborted{Code: f.Code, Text: f.Text} }

// CloseWindow releases a window as soon as nothing moves any more, so that a failed release fails the transfer.
func CloseWindow(w *window.Window) error {
	w.Clean()
	if err := w.Close(); err != nil {
		return fmt.Errorf("releasing the window: %w", err)
	}
	return nil
}

// DigestQueue makes calls that read whole files for their digests, in jobs and one after another. The owner of the
// transfer uses it.
type DigestQueue struct {
	Link  Link
	calls []func() // start the jobs; the first job is running
}

// Add makes a call after those that were added before, as Link.Run does.
func (d *DigestQueue) Add(ctx context.Context, job func(ctx context.Context) Call) {
	d.calls = append(d.calls, func() {
		d.Link.Run(ctx, func(ctx context.Context) Call {
			then := job(ctx)
			return func(ctx context.Context) error {
				if d.calls = d.calls[1:]; len(d.calls) > 0 {
					d.calls[0]()
				}
				return then(ctx)
			}
		})
	})
	if len(d.calls) == 1 {
		d.calls[0]()
	}
}
