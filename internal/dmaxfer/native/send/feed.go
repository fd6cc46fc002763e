package send

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// feed implements pump.Feed: it hands out the files that the receiver needs, in the order of its answers. A file is
// read in chunks, or together with others into one slot.
//
//	add ─► queue ─┬─► current file, chunk by chunk ─► END
//	              └─► as many whole files as fit into a slot
//
// The owner of the transfer calls add and finish, lanes everything else.
type feed struct {
	t    *role.Transfer
	box  *pump.Batch[pump.Announcement]
	most int // files of one message

	// cannotSend is called by lanes for an entry that cannot be sent. An error ends the transfer.
	cannotSend func(e *entry, err error) error

	opening   chan struct{} // has a place for the lane that opens the current file
	delivered atomic.Bool   // a unit; so both sides use the window

	mu       sync.Mutex
	queue    []*entry
	current  *entry // nil: none
	finished bool   // nothing will be added to queue
}

func newFeed(
	t *role.Transfer, box *pump.Batch[pump.Announcement], cannotSend func(e *entry, err error) error,
) *feed {
	return &feed{
		t: t, box: box, most: native.MaxPacked(cap(t.Message), t.Params.Plan.Digest),
		cannotSend: cannotSend, opening: make(chan struct{}, 1),
	}
}

// add adds a file to the queue.
func (f *feed) add(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, e)
}

// finish says that nothing will be added any more.
func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
}

// Next implements pump.Feed.
func (f *feed) Next(ctx context.Context, buffer []byte, unit *pump.Unit) error {
	for {
		current, pack, err := f.take(int64(len(buffer)))
		if err != nil {
			return err
		}
		filled := false
		if current != nil {
			filled, err = f.nextChunk(ctx, current, buffer, unit)
		} else {
			filled, err = f.fillPack(ctx, pack, buffer, unit)
		}
		if filled || err != nil {
			return err
		}
	}
}

// take returns the file to read a chunk of, or else files that fit together into so many bytes.
func (f *feed) take(bytes int64) (current *entry, pack []*entry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil {
		return f.current, nil, nil
	}
	if len(f.queue) == 0 {
		if f.finished {
			return nil, nil, io.EOF
		}
		return nil, nil, pump.ErrLater
	}
	for used := int64(0); len(pack) < min(len(f.queue), f.most); {
		next := f.queue[len(pack)]
		if !next.packed || used+next.size > bytes {
			break
		}
		pack = append(pack, next)
		used = aligned(used + next.size)
	}
	if len(pack) > 0 {
		f.drop(len(pack))
		return nil, pack, nil
	}
	f.current = f.queue[0]
	f.drop(1)
	return f.current, nil, nil
}

// drop removes the first entries of the queue.
func (f *feed) drop(count int) { f.queue = f.queue[:copy(f.queue, f.queue[count:])] }

// aligned rounds a position up, so that each file of a slot begins in a cache line of its own.
func aligned(position int64) int64 { return (position + 63) &^ 63 }

// leave has the lanes go on with the next file.
func (f *feed) leave(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == e {
		f.current = nil
	}
}

// Checked implements pump.Feed.
func (f *feed) Checked(ctx context.Context, unit *pump.Unit, bytes []byte) error {
	if unit.Packed() {
		return f.checkPack(unit)
	}
	return f.chunkRead(ctx, unit.Ref.(*entry), false, func(l *digest.Ledger) error {
		return pump.AddToLedger(l, unit.Chunk(), bytes, unit.Record.Check)
	})
}

// Delivered implements pump.Feed. A pack has no files any more if all of them were withdrawn.
func (f *feed) Delivered(unit *pump.Unit) {
	f.delivered.Store(true)
	if !unit.Packed() {
		f.t.Stats.BytesMoved(unit.Chunk().Length)
		return
	}
	for i := range unit.Pack.Files {
		f.t.Stats.BytesMoved(int64(unit.Pack.Files[i].Length))
	}
}

// Refused implements pump.Feed.
func (f *feed) Refused(claim *pump.Unit) { claim.Ref.(*entry).refused.Add(claim.Chunk().Length) }

// Retransmitting implements pump.Feed.
func (f *feed) Retransmitting(unit *pump.Unit) { f.t.Stats.Retransmitting(unit) }
