package pump

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// ReceiverConfig configures a Receiver. The caller keeps ownership of everything in it.
type ReceiverConfig struct {
	Depth  int // number of slots of the window
	Digest digest.Algorithm
	Stages *Stages

	// Buffers is the private memory of each lane. It has Depth slots if InOrder, and a slot for each of the lane's with
	// InPlace.
	Buffers []Slots

	// Engines copy from the window to Buffers. There is one for each lane.
	Engines []Engine

	// InPlace guards Buffers, where content arrives in them: one for each lane. Otherwise it is nil.
	InPlace []InPlace

	// InOrder stores the chunks of a file in the order of their offsets, for an ordered digest or a stream. There is
	// one lane then.
	InOrder bool

	// Pushed has all announced content fetched, also of a file that is ignored: it arrives anyway, and the engine would
	// keep it from the next unit of the slot.
	Pushed bool

	// Pace waits until the bandwidth limit allows so many more bytes. It may be nil.
	Pace func(ctx context.Context, bytes int64) error

	// Poller is nil if another goroutine carries the messages.
	Poller Poller

	// Pinning pins the lanes to CPUs. If nil, the lanes are not pinned.
	Pinning Pinning

	// Log has a line at level TRACE for each unit whose content has arrived.
	Log zerolog.Logger

	// Outbox takes the acknowledgements.
	Outbox *Batch[Reply]

	// StorePack is called by a lane with a unit of whole files whose checksums are good, and with its content. It
	// returns what is to be done after the unit has been acknowledged, or nil. An error ends the transfer.
	StorePack func(ctx context.Context, unit *Unit, content []byte) (after func(), err error)

	// Retransmit is called for each unit that the sender is to send again.
	Retransmit func(unit *Unit)
}

// Reply is what a receiver has for the peer: an acknowledgement, or else what the owner of the outbox has added.
type Reply struct {
	Ack   native.Ack
	Other any // not nil: not an acknowledgement
}

// Receiver stores the units that the sender announces.
type Receiver struct {
	config ReceiverConfig
	lanes  []*receiverLane
	packs  []native.Pack // by slot: the pack announced last

	// writing is taken by pinned lanes, which would spin in the file's own lock.
	writing sync.Mutex

	rejected atomic.Int64 // units since the last good one
}

// NewReceiver returns a Receiver. Run starts it.
func NewReceiver(c ReceiverConfig) *Receiver {
	r := &Receiver{config: c, packs: make([]native.Pack, c.Depth)}
	for i := range c.Engines {
		r.lanes = append(r.lanes, newReceiverLane(r, i))
	}
	return r
}

// Take accepts an announced chunk of a file. It never blocks, because the sender announces a slot only after it has
// been acknowledged.
func (r *Receiver) Take(record native.Record, of *Incoming) {
	r.lanes[int(record.Slot)%len(r.lanes)].inbox <- Unit{Record: record, Ref: of}
}

// TakePack accepts announced whole files, and ref as Unit.Ref. It never blocks, and keeps nothing of pack.
func (r *Receiver) TakePack(pack native.Pack, ref any) {
	own := &r.packs[pack.Slot]
	own.Slot, own.Attempt, own.Files = pack.Slot, pack.Attempt, append(own.Files[:0], pack.Files...)
	record := native.Record{Slot: pack.Slot, Attempt: pack.Attempt}
	r.lanes[int(pack.Slot)%len(r.lanes)].inbox <- Unit{Record: record, Pack: *own, Ref: ref}
}

// End says that no unit follows. It must be called once.
func (r *Receiver) End() {
	for _, l := range r.lanes {
		close(l.inbox)
	}
}

// Run receives until End has been called and everything is stored. When it returns all lanes have ended. After an
// error, moves may still be in flight until the engines are closed.
func (r *Receiver) Run(ctx context.Context) error {
	return runLanes(ctx, r.lanes, r.config.Pinning)
}
