package pump

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// file is one file of a pair, which is sent in chunks or with others in one slot.
type file struct {
	number         int
	source, target *memory
	holes          Holes
	resume         int64
	stream         io.Reader // replaces the source if not nil
	whole          bool      // it is sent with others in one slot

	reader   Reader
	incoming *Incoming
	moved    atomic.Int64 // bytes, counted by the sender
	stored   int64        // bytes, counted by the receiver
	prefix   int64        // last one reported by the receiver
	packed   atomic.Int64 // how often it was stored from a pack

	mu     sync.Mutex
	ledger *digest.Ledger // of the sender
	sum    digest.Sum     // of the sender, if whole
}

func (f *file) build(p *pair) {
	f.reader = NewFileReader(f.source, f.resume, f.holes)
	if f.stream != nil {
		f.reader = NewStreamReader(streamOf{f.stream})
	}
	f.ledger = digest.NewLedger(p.algorithm, p.slots)
	f.incoming = NewIncoming(f.target, p.algorithm, p.slots)
	f.incoming.Moved = f.storedChunk
}

func (f *file) storedChunk(chunk Chunk, prefix int64) error {
	f.stored += chunk.Length
	if prefix < f.prefix {
		return errors.New("the prefix decreased")
	}
	f.prefix = prefix
	return nil
}

// sent returns how many bytes the sender has read without a gap, and their digest.
func (f *file) sent() (int64, digest.Sum) {
	if f.whole {
		return f.moved.Load(), f.sum
	}
	return f.ledger.Prefix(), f.ledger.Sum()
}

// fileFeed is the Feed of the files of a pair, of which it reads some in turns.
type fileFeed struct {
	pair  *pair
	turn  chan struct{} // held while the fields below are used; tests in virtual time cannot sleep under a mutex
	queue []*file
	open  []*file // being read in chunks
	asked int     // calls of take
}

// packAlignment is that of files in a slot, in bytes.
const packAlignment = 8

func newFileFeed(p *pair) *fileFeed {
	return &fileFeed{pair: p, turn: make(chan struct{}, 1), queue: append([]*file(nil), p.files...)}
}

func (f *fileFeed) Next(_ context.Context, buffer []byte, unit *Unit) error {
	for {
		current, whole := f.take(int64(len(buffer)))
		switch {
		case whole != nil:
			return f.pack(whole, buffer, unit)
		case current == nil:
			return io.EOF
		}
		chunk, err := current.reader.Next(buffer)
		if err == io.EOF {
			f.leave(current)
			continue
		}
		if err != nil {
			return err
		}
		unit.SetChunk(uint32(current.number), chunk)
		unit.Ref = current
		return nil
	}
}

// take returns a file to read a chunk of, or those that fit together into so many bytes.
func (f *fileFeed) take(bytes int64) (current *file, whole []*file) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	for used := int64(0); len(whole) < len(f.queue) && f.queue[len(whole)].whole; {
		size := int64(len(f.queue[len(whole)].source.bytes))
		if used+size > bytes {
			break
		}
		whole = f.queue[:len(whole)+1]
		used = align(used + size)
	}
	if len(whole) > 0 {
		f.queue = f.queue[len(whole):]
		return nil, whole
	}
	for len(f.queue) > 0 && len(f.open) < f.pair.atOnce && !f.queue[0].whole {
		f.open, f.queue = append(f.open, f.queue[0]), f.queue[1:]
	}
	if len(f.open) == 0 {
		return nil, nil
	}
	f.asked++
	return f.open[f.asked%len(f.open)], nil
}

func align(position int64) int64 {
	return (position + packAlignment - 1) / packAlignment * packAlignment
}

func (f *fileFeed) leave(ended *file) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	for i, o := range f.open {
		if o == ended {
			f.open = append(f.open[:i], f.open[i+1:]...)
			return
		}
	}
}

func (f *fileFeed) pack(whole []*file, buffer []byte, unit *Unit) error {
	used := int64(0)
	for _, o := range whole {
		size := int64(len(o.source.bytes))
		if err := o.source.ReadAt(buffer[used:used+size], 0); err != nil {
			return err
		}
		unit.Pack.Files = append(unit.Pack.Files, native.PackedFile{
			Entry: uint32(o.number), Position: uint32(used), Length: uint32(size),
		})
		used = align(used + size)
	}
	return nil
}

func (f *fileFeed) Checked(_ context.Context, unit *Unit, content []byte) error {
	if !unit.Packed() {
		o := unit.Ref.(*file)
		o.mu.Lock()
		defer o.mu.Unlock()
		return AddToLedger(o.ledger, unit.Chunk(), content, unit.Record.Check)
	}
	for i := range unit.Pack.Files {
		packed := &unit.Pack.Files[i]
		o := f.pair.files[packed.Entry]
		o.sum = digest.SumOf(f.pair.algorithm, ContentOf(packed, content), packed.Check)
	}
	return nil
}

func (f *fileFeed) Delivered(unit *Unit) {
	if !unit.Packed() {
		unit.Ref.(*file).moved.Add(unit.Chunk().Length)
		return
	}
	for i := range unit.Pack.Files {
		f.pair.files[unit.Pack.Files[i].Entry].moved.Add(int64(unit.Pack.Files[i].Length))
	}
}

func (*fileFeed) Refused(*Unit) {}

func (f *fileFeed) Retransmitting(*Unit) { f.pair.retransmits[0].Add(1) }
