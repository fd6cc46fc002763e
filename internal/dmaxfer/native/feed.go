package native

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// outgoing is an entry that the sender has announced and the receiver has not decided yet.
type outgoing struct {
	number     uint32
	kind       negotiate.EntryKind
	path       string // for messages and events
	size       int64  // bytes; job.Unknown for a stream
	packed     bool   // may be sent together with others
	attributes []byte // extended ones, as they are sent
	decided    atomic.Bool

	// open opens the content, and release lets go of what open needs. Both are nil for an entry without content.
	open    func() (*content, error)
	release func()

	// The following are used by the owner of the transfer until the file is queued.
	answered  bool               // the receiver's answer is final
	flushing  bool               // the receiver flushes and commits it
	resume    int64              // bytes that the receiver has, by its answer
	directory *settlingDirectory // nil: it is none

	content *content
	reader  pump.Reader

	mu     sync.Mutex // not held while a call to the file system may hang
	ledger *digest.Ledger
	users  int  // calls that use the content, or are about to add a chunk to the ledger
	read   bool // the reader has come to its end
	ended  bool // its end is announced
}

// acquire keeps the content open until letGo is called, and reports whether it is still to be read.
func (o *outgoing) acquire() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || o.decided.Load() {
		return false
	}
	o.users++
	return true
}

// letGo ends the use that began with acquire.
func (o *outgoing) letGo() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users--
	o.closeUnused()
}

// decide ends the entry. A lane that uses its content closes it.
func (o *outgoing) decide() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decided.Store(true)
	o.closeUnused()
}

// closeUnused closes the content when no lane uses it and nothing more is wanted of it. The caller has locked mu.
func (o *outgoing) closeUnused() {
	if o.users > 0 {
		return
	}
	if o.content != nil && (o.ended || o.decided.Load()) {
		o.content.close()
		o.content = nil
	}
	if o.release != nil && o.decided.Load() {
		o.release()
		o.release = nil
	}
}

// errDecided means that the content of an entry is not wanted any more. It is not reported.
var errDecided = errors.New("internal error: the entry is decided")

// content is what an entry has to send: a file, or else a stream.
type content struct {
	source *disk.Source
	stream *disk.Stream
	close  func()
}

// feed implements pump.Feed: it hands out the files that the receiver needs, in the order of its answers. A file is
// read in chunks, or together with others into one slot.
//
//	need ─► queue ─┬─► current file, chunk by chunk ─► END
//	               └─► as many whole files as fit into a slot
type feed struct {
	terms   *terms
	outbox  *pump.Batch[pump.Announcement]
	account *account
	most    int // files of one message

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
	o.letGo()
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
	return c.source.Verify()
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

// chunkDone is that of the feed, except for the end of the file. It reports whether this was the last chunk; the
// content is still acquired then.
func (o *outgoing) chunkDone(read bool, add func(*digest.Ledger) error) (last bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if add != nil {
		err = add(o.ledger)
	}
	o.read = o.read || read
	complete := o.read || o.size != job.Unknown && o.ledger.Prefix() == o.size
	if err == nil && complete && o.users == 1 && !o.ended && !o.decided.Load() {
		o.ended = true
		return true, nil
	}
	o.users--
	o.closeUnused()
	return false, err
}

// end announces the end of a file that was sent in chunks, and has not changed.
func (f *feed) end(o *outgoing) error {
	if o.content.source != nil && !f.terms.plan.AllowChanging {
		if err := o.content.source.Verify(); err != nil {
			return err
		}
	}
	size, sum := o.ledger.Prefix(), o.ledger.Sum()
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
