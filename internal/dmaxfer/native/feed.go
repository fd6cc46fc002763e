package native

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// feed implements pump.Feed: it hands out the files that the receiver needs, in the order of its answers. A file is
// read in chunks, or together with others into one slot.
//
//	need ─► queue ─┬─► current file, chunk by chunk ─► END
//	               └─► as many whole files as fit into a slot
type feed struct {
	*common
	outbox *pump.Batch[pump.Announcement]
	most   int // files of one message

	// ending is called before the end of a file is announced, and failed for an entry that cannot be sent. Both are
	// called by lanes; an error ends the transfer.
	ending func(o *outgoing, size int64, sum digest.Sum) error
	failed func(o *outgoing, err error) error

	working context.Context // of the transfer; set before the first file is needed
	opening semaphore       // held while a lane opens the current file

	delivered atomic.Bool // a unit; so both sides use the window

	mu       sync.Mutex
	queue    []*outgoing
	current  *outgoing // nil: none
	finished bool      // nothing will be added to queue
}

func newFeed(
	c *common, outbox *pump.Batch[pump.Announcement], ending func(o *outgoing, size int64, sum digest.Sum) error,
) *feed {
	return &feed{
		common: c, outbox: outbox, most: negotiate.MaxPacked(cap(c.message), c.terms.plan.Digest),
		ending: ending, opening: make(semaphore, 1),
	}
}

// need adds a file to the queue.
func (f *feed) need(o *outgoing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, o)
}

// finish says that nothing will be needed any more.
func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
}

// Next implements pump.Feed.
func (f *feed) Next(buffer []byte, unit *pump.Unit) error {
	for {
		current, pack, err := f.take(int64(len(buffer)))
		if err != nil {
			return err
		}
		filled := false
		if current != nil {
			filled, err = f.nextChunk(current, buffer, unit)
		} else {
			filled, err = f.fillPack(pack, buffer, unit)
		}
		if filled || err != nil {
			return err
		}
	}
}

// take returns the file to read a chunk of, or else files that fit together into so many bytes.
func (f *feed) take(bytes int64) (current *outgoing, pack []*outgoing, err error) {
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

// nextChunk reads the next chunk of the current file. Several lanes may do so for the same file.
func (f *feed) nextChunk(o *outgoing, buffer []byte, unit *pump.Unit) (filled bool, err error) {
	if !o.acquire() {
		f.leave(o)
		return false, nil
	}
	if err := f.begin(o); err != nil {
		return false, f.giveUp(o, err)
	}
	chunk, err := o.reader.Next(buffer)
	if err == io.EOF {
		f.leave(o)
		return false, f.chunkDone(o, true, nil)
	}
	if err != nil {
		return false, f.giveUp(o, err)
	}
	unit.SetChunk(o.number, chunk)
	unit.Ref = o
	return true, nil
}

// begin opens a file before its first chunk. The caller has acquired it.
func (f *feed) begin(o *outgoing) error {
	f.opening.acquire()
	defer f.opening.release()
	if o.reader != nil {
		return nil
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	if c.source != nil && f.terms.plan.Tree { // a single file was checked before
		if err := f.terms.checkHoles(c.source, o.path); err != nil {
			c.close()
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content, o.ledger = c, digest.NewLedger(f.terms.plan.Digest, int(f.terms.plan.Depth))
	if c.stream != nil {
		o.reader = pump.NewStreamReader(c.stream)
	} else {
		o.reader = pump.NewFileReader(c.source, o.resume, f.terms.holes())
	}
	return nil
}

// leave has the lanes go on with the next file.
func (f *feed) leave(o *outgoing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == o {
		f.current = nil
	}
}

// giveUp goes on without a file that cannot be sent.
func (f *feed) giveUp(o *outgoing, err error) error {
	f.leave(o)
	o.giveUp()
	return f.failed(o, err)
}

// fillPack reads whole files into a slot.
func (f *feed) fillPack(pack []*outgoing, buffer []byte, unit *pump.Unit) (filled bool, err error) {
	used := int64(0)
	sent := make([]*outgoing, 0, len(pack))
	for _, o := range pack {
		if f.working.Err() != nil {
			return false, context.Cause(f.working)
		}
		f.terms.config.Progress.Touch()
		if !o.acquire() {
			continue
		}
		err := f.readWhole(o, buffer[used:used+o.size])
		o.letGo()
		if err != nil {
			if err := f.failed(o, err); err != nil {
				return false, err
			}
			continue
		}
		unit.Pack.Files = append(unit.Pack.Files, negotiate.PackedFile{
			Entry: o.number, Position: uint32(used), Length: uint32(o.size),
		})
		sent = append(sent, o)
		used = aligned(used + o.size)
	}
	unit.Ref = sent
	return len(sent) > 0, nil
}

// readWhole reads a small file, which must not change meanwhile.
func (f *feed) readWhole(o *outgoing, buffer []byte) error {
	c, err := o.open()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.source.ReadAt(buffer, 0); err != nil {
		return err
	}
	if f.terms.plan.AllowChanging {
		return nil
	}
	return c.source.Verify(func() (bool, error) {
		again := make([]byte, len(buffer))
		err := c.source.ReadAt(again, 0)
		return bytes.Equal(again, buffer), err
	})
}

// Checked implements pump.Feed.
func (f *feed) Checked(unit *pump.Unit, bytes []byte) error {
	if !unit.Packed() {
		return f.chunkDone(unit.Ref.(*outgoing), false, func(l *digest.Ledger) error {
			return pump.AddToLedger(l, unit.Chunk(), bytes, unit.Record.Check)
		})
	}
	for i, o := range unit.Ref.([]*outgoing) {
		file := &unit.Pack.Files[i]
		sum, err := digest.NewSum(f.terms.plan.Digest, file.Digest[:f.terms.plan.Digest.Size()])
		if err != nil {
			return err
		}
		if err := f.ending(o, o.size, sum); err != nil {
			return err
		}
	}
	return nil
}

// chunkDone notes that a chunk has been added to the ledger by add, or that the reader has come to its end. After the
// last of both it announces the end of the file.
func (f *feed) chunkDone(o *outgoing, read bool, add func(*digest.Ledger) error) error {
	last, err := o.chunkDone(read, add)
	if err != nil || !last {
		return err
	}
	defer o.letGo()
	if err := f.end(o); err != nil {
		return f.failed(o, err)
	}
	return nil
}

// end announces the end of a file that was sent in chunks, and has not changed.
func (f *feed) end(o *outgoing) error {
	size, sum := o.ledger.Prefix(), o.ledger.Sum()
	if o.content.source != nil && !f.terms.plan.AllowChanging {
		if err := verifySource(f.working, f.terms, o.content.source, sum); err != nil {
			return err
		}
	}
	if err := f.ending(o, size, sum); err != nil {
		return err
	}
	f.outbox.Add(pump.Announcement{End: &pump.End{Entry: o.number, Size: size, Sum: sum}})
	f.outbox.Flush()
	return nil
}

// Delivered implements pump.Feed. A pack has no files any more if all of them were withdrawn.
func (f *feed) Delivered(unit *pump.Unit) {
	f.delivered.Store(true)
	if o, is := unit.Ref.(*outgoing); is {
		f.account.chunkMoved(o.resume, unit.Chunk())
		return
	}
	for i := range unit.Pack.Files {
		f.account.bytesMoved(int64(unit.Pack.Files[i].Length))
	}
}

// Retransmitting implements pump.Feed.
func (f *feed) Retransmitting(unit *pump.Unit) { f.account.retransmitting(unit) }

// withdraw removes what must not be sent any more, because its entry has been decided, from a unit that is about to
// be announced. It reports whether nothing is left.
func withdraw(unit *pump.Unit) (empty bool) {
	if !unit.Packed() {
		return unit.Ref.(*outgoing).decided.Load()
	}
	entries := unit.Ref.([]*outgoing)
	kept := 0
	for i, o := range entries {
		if !o.decided.Load() {
			entries[kept], unit.Pack.Files[kept] = o, unit.Pack.Files[i]
			kept++
		}
	}
	unit.Ref, unit.Pack.Files = entries[:kept], unit.Pack.Files[:kept]
	return kept == 0
}
