package pump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// pair is a Sender and a Receiver that share a window, without a protocol between them.
type pair struct {
	*file             // the first one
	files     []*file // all
	atOnce    int     // files that are read in turns
	chunk     int64
	slots     int
	lanes     [2]int // of the sender, of the receiver
	algorithm digest.Algorithm
	hostSends bool // the sender reads into the window, and the receiver has the engines
	inOrder   bool
	ranges    int // that one move of the receiver's engines fetches at most
	seed      uint64
	pinning   Pinning      // for the lanes of both sides
	corrupt   func() bool  // reports whether to corrupt the next move
	broken    func() error // error of the next move

	sender      *Sender
	receiver    *Receiver
	announced   *Batch[Announcement]
	replies     *Batch[Reply]
	stages      [2]Stages
	retransmits [2]atomic.Int64
	packs       atomic.Int64 // stored
	afterPacks  atomic.Int64 // calls of what StorePack returned
	wire        delivered
}

// delivered records the messages that carry has delivered.
type delivered struct {
	taken     []bool // by slot: announced, and not acknowledged
	dataBelow int64  // bytes below resume that were sent as data
	claims    int
	messages  [2]int // of the sender, of the receiver
	violation error
	acks      []native.Ack
}

// addFile adds a file; its number is its entry.
func (p *pair) addFile(content []byte) *file {
	f := &file{number: len(p.files), source: newMemory(content), target: newMemory(make([]byte, len(content)))}
	p.files = append(p.files, f)
	return f
}

func (p *pair) build() {
	window := make([]byte, int64(p.slots)*p.chunk)
	p.wire.taken = make([]bool, p.slots)
	batch := max(1, p.slots/4)
	p.announced, p.replies = NewBatch[Announcement](2*p.slots, batch), NewBatch[Reply](2*p.slots, batch)
	for _, f := range p.files {
		f.build(p)
	}
	sent := SenderConfig{
		Feed: newFileFeed(p), Slots: NewSlots(window, p.chunk), Lanes: p.lanes[0],
		Digest: p.algorithm, Stages: &p.stages[0], Pinning: p.pinning, Outbox: p.announced,
	}
	if !p.hostSends {
		own := make([]byte, len(window))
		sent.Slots = NewSlots(own, p.chunk)
		for lane := range p.lanes[0] {
			sent.Engines = append(sent.Engines, p.engine(own, window, true, lane))
		}
	}
	received := ReceiverConfig{
		Depth: p.slots, InOrder: p.inOrder, Digest: p.algorithm, Stages: &p.stages[1],
		Pinning: p.pinning, Outbox: p.replies,
		StorePack: p.storePack, Retransmit: func(*Unit) { p.retransmits[1].Add(1) },
	}
	for lane := range p.lanes[1] {
		count := (p.slots + p.lanes[1] - 1) / p.lanes[1]
		own := make([]byte, int64(count)*p.chunk)
		received.Buffers = append(received.Buffers, NewSlots(own, p.chunk))
		if p.hostSends {
			received.Engines = append(received.Engines, p.engine(window, own, false, lane))
		} else {
			received.Engines = append(received.Engines, NewCopier(window, own, count, p.algorithm))
		}
	}
	p.sender, p.receiver = NewSender(sent), NewReceiver(received)
}

func (p *pair) engine(from, to []byte, toWindow bool, lane int) *engine {
	return &engine{
		from: from, to: to, toWindow: toWindow, corrupt: p.corrupt, broken: p.broken, ranges: p.ranges, chunk: p.chunk,
		random: rand.New(rand.NewPCG(p.seed, uint64(lane))),
	}
}

// storePack is ReceiverConfig.StorePack.
func (p *pair) storePack(_ context.Context, unit *Unit, content []byte) (after func(), err error) {
	for i := range unit.Pack.Files {
		packed := &unit.Pack.Files[i]
		bytes := ContentOf(packed, content)
		sum := digest.SumOf(p.algorithm, bytes, packed.Check)
		if [wire.MaxDigestSize]byte(packed.Digest) != padded(sum) {
			return nil, fmt.Errorf("the digest of file %d is not %s", packed.Entry, sum)
		}
		f := p.files[packed.Entry]
		if err := f.target.WriteAt(bytes, 0); err != nil {
			return nil, err
		}
		f.packed.Add(1)
	}
	p.packs.Add(1)
	return func() { p.afterPacks.Add(1) }, nil
}

// padded returns the digest as in a pack.
func padded(sum digest.Sum) (padded [wire.MaxDigestSize]byte) {
	sum.CopyTo(padded[:])
	return padded
}

// run executes the transfer and returns the error of each side.
func (p *pair) run(ctx context.Context) (sent, received error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var sides, carrier sync.WaitGroup
	carried, finish := context.WithCancel(context.Background())
	carrier.Go(func() { p.carry(carried) })
	sides.Go(func() {
		if sent = p.sender.Run(ctx); sent != nil {
			stop(sent)
			return
		}
		p.receiver.End()
	})
	sides.Go(func() {
		if received = p.receiver.Run(ctx); received != nil {
			stop(received)
		}
	})
	sides.Wait()
	finish()
	carrier.Wait()
	return sent, received
}

// carry delivers the messages of both sides and checks the rules for slots.
func (p *pair) carry(ctx context.Context) {
	for {
		select {
		case <-p.announced.Waiting():
			p.wire.messages[0]++
			p.deliverAnnounced()
		case <-p.replies.Waiting():
			p.wire.messages[1]++
			p.deliverReplies()
		case <-ctx.Done():
			return
		}
	}
}

// deliverAnnounced passes to the receiver what the sender has announced.
func (p *pair) deliverAnnounced() {
	for _, a := range p.announced.Take() {
		p.inspect(a.Unit)
		if a.Unit.Packed() {
			p.receiver.TakePack(a.Unit.Pack, nil)
		} else {
			p.receiver.Take(a.Unit.Record, p.files[a.Unit.Record.Entry].incoming)
		}
	}
}

// deliverReplies passes the acknowledgements to the sender.
func (p *pair) deliverReplies() {
	p.wire.acks = p.wire.acks[:0]
	for _, r := range p.replies.Take() {
		if !p.wire.taken[r.Ack.Slot] {
			p.wire.violation = fmt.Errorf("slot %d is acknowledged twice", r.Ack.Slot)
		}
		p.wire.taken[r.Ack.Slot] = false
		p.wire.acks = append(p.wire.acks, r.Ack)
	}
	p.sender.Acknowledge(p.wire.acks)
}

// inspect checks an announced unit.
func (p *pair) inspect(u *Unit) {
	slot, r := u.Record.Slot, &u.Record
	switch {
	case p.wire.taken[slot]:
		p.wire.violation = fmt.Errorf("slot %d is announced twice", slot)
	case u.Used() > p.chunk:
		p.wire.violation = fmt.Errorf("%s for slots of %d bytes", u, p.chunk)
	case u.Packed() && (u.Pack.Slot != slot || u.Pack.Attempt != r.Attempt):
		p.wire.violation = fmt.Errorf("slot %d, attempt %d of a pack in slot %d, attempt %d",
			u.Pack.Slot, u.Pack.Attempt, slot, r.Attempt)
	}
	p.wire.taken[slot] = true
	if u.Packed() {
		return
	}
	switch {
	case r.Kind == native.ClaimRecord:
		p.wire.claims++
	case r.Kind == native.DataRecord && int64(r.Offset+r.Length) <= p.files[r.Entry].resume:
		p.wire.dataBelow += int64(r.Length)
	}
}

// memory is a file in memory. extents are the data and holes that it reports, true or not.
type memory struct {
	mu      sync.Mutex
	bytes   []byte
	extents []disk.Extent
	failAt  int64 // calls that include this offset fail; negative: none do
	written int64 // bytes
	pause   func()
}

var errDisk = errors.New("the disk is broken")

func newMemory(content []byte) *memory { return &memory{bytes: content, failAt: -1, pause: func() {}} }

func (m *memory) fails(offset, length int64) error {
	if m.failAt >= offset && m.failAt < offset+length {
		return errDisk
	}
	return nil
}

func (m *memory) ReadAt(buffer []byte, offset int64) error {
	m.pause()
	copy(buffer, m.bytes[offset:])
	return m.fails(offset, int64(len(buffer)))
}

func (m *memory) WriteAt(chunk []byte, offset int64) error {
	m.pause()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written += int64(len(chunk))
	copy(m.bytes[offset:], chunk)
	return m.fails(offset, int64(len(chunk)))
}

func (m *memory) Punch(offset, length int64) error {
	clear(m.bytes[offset : offset+length])
	return m.fails(offset, length)
}

func (m *memory) NextExtent(offset int64) (disk.Extent, error) {
	if offset == int64(len(m.bytes)) {
		return disk.Extent{}, io.EOF
	}
	for _, e := range m.extents {
		if offset >= e.Offset && offset < e.Offset+e.Length {
			return disk.Extent{Offset: offset, Length: e.Offset + e.Length - offset, Hole: e.Hole}, nil
		}
	}
	return disk.Extent{Offset: offset, Length: int64(len(m.bytes)) - offset}, nil
}

// streamOf is a Stream that reads from an io.Reader.
type streamOf struct{ from io.Reader }

func (s streamOf) Next(buffer []byte) (int, error) {
	n, err := io.ReadFull(s.from, buffer)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// engine completes moves late and in random order, and accepts a random number of them.
type engine struct {
	from, to []byte
	toWindow bool
	ranges   int   // of one move at most
	chunk    int64 // bytes of one move at most
	corrupt  func() bool
	broken   func() error
	random   *rand.Rand
	inFlight []Move
	taken    int // moves
}

var _ Gatherer = (*engine)(nil)

func (e *engine) MaxRanges() int { return e.ranges }

func (e *engine) Submit(moves []Move) (int, error) {
	n := len(moves)
	if len(e.inFlight) > 0 {
		n = e.random.IntN(n + 1)
	}
	for _, m := range moves[:n] {
		if err := e.check(m); err != nil {
			return 0, err
		}
		e.inFlight = append(e.inFlight, m)
		e.taken++
	}
	return n, nil
}

// check returns an error for a move that is against the rules for an Engine.
func (e *engine) check(m Move) error {
	total := lengthOf(m)
	if 1+len(m.More) > e.ranges || total > e.chunk {
		return fmt.Errorf("a move of %d ranges with %d bytes", 1+len(m.More), total)
	}
	for _, other := range e.inFlight {
		if m.Buffer < other.Buffer+lengthOf(other) && other.Buffer < m.Buffer+total {
			return fmt.Errorf("two moves use the buffer at %d", m.Buffer)
		}
	}
	return nil
}

// lengthOf returns the number of bytes of a move.
func lengthOf(m Move) int64 {
	total := m.Length
	for _, r := range m.More {
		total += r.Length
	}
	return total
}

func (e *engine) Inflight() int { return len(e.inFlight) }
func (e *engine) Close() error  { return nil }

func (e *engine) Poll(into []Moved) int {
	if len(e.inFlight) == 0 {
		return 0
	}
	return e.end(into, e.random.IntN(len(e.inFlight)+1))
}

func (e *engine) Reap(_ context.Context, into []Moved) (int, error) {
	if len(e.inFlight) == 0 {
		return 0, nil
	}
	return e.end(into, 1+e.random.IntN(len(e.inFlight))), nil
}

func (e *engine) end(into []Moved, n int) int {
	n = min(n, len(into))
	for i := range n {
		chosen, last := e.random.IntN(len(e.inFlight)), len(e.inFlight)-1
		m := e.inFlight[chosen]
		e.inFlight[chosen], e.inFlight = e.inFlight[last], e.inFlight[:last]
		into[i] = Moved{Tag: m.Tag, Err: e.move(m)}
	}
	return n
}

func (e *engine) move(m Move) error {
	total := lengthOf(m)
	if e.toWindow {
		copy(e.to[m.Window:m.Window+total], e.from[m.Buffer:m.Buffer+total])
		e.flip(e.to[m.Window : m.Window+total])
		return e.broken()
	}
	to := e.to[m.Buffer : m.Buffer+total]
	copied := copy(to, e.from[m.Window:m.Window+m.Length])
	for _, r := range m.More {
		copied += copy(to[copied:], e.from[r.Offset:r.Offset+r.Length])
	}
	e.flip(to)
	return e.broken()
}

// flip corrupts the bytes of a move if it is to be corrupted.
func (e *engine) flip(bytes []byte) {
	if e.corrupt() {
		bytes[e.random.IntN(len(bytes))] ^= 1
	}
}

// copier returns an engine from the sender's window to the receiver's buffers, for transfers with one lane.
func (p *pair) copier() *Copier {
	return NewCopier(p.sender.config.Slots.memory, p.receiver.config.Buffers[0].memory, p.slots, p.algorithm)
}
