package window

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// This file is PathFast: the window is memory that the receiver posts to its consumers, one for each lane, and the
// sender's producers send to it. The immediate data of a message is the number of its slot. The records that describe
// what is in the slot travel over the control channel, as with DMA: a pack's records are longer than immediate data may
// be, and the session sees them in one order with everything else.

// slotNumberSize is the size of the immediate data.
const slotNumberSize = 4

// exposeConsumers makes the window of a receiver.
func (d deviceMemory) exposeConsumers(ctx context.Context, l Layout) (*Window, error) {
	w := &Window{}
	for lane := range l.Lanes {
		engine, err := d.addConsumer(ctx, w, l, lane)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.Descriptor = native.AppendConsumers(w.Descriptor, []uint32{engine.consumer.ID()})
	}
	return w, nil
}

// addConsumer adds one lane's consumer, with one posted buffer for each of the lane's slots.
func (d deviceMemory) addConsumer(ctx context.Context, w *Window, l Layout, lane int) (*consumerEngine, error) {
	slots := l.LaneSlots(lane)
	region, err := d.device.Alloc(int64(slots)*l.Chunk, doca.LocalWrite|doca.RemoteWrite)
	if err != nil {
		return nil, fmt.Errorf("registering buffers: %w", err)
	}
	w.AddCloser(region)
	fast := d.conn.(comch.FastPath)
	consumer, err := fast.NewConsumer(ctx, region, doca.ConsumerConfig{Depth: slots, Immediate: slotNumberSize})
	if err != nil {
		return nil, fmt.Errorf("starting a consumer: %w", err)
	}
	w.AddCloser(consumer)
	private := make([]byte, int64(l.Buffers)*l.Chunk)
	engine := newConsumerEngine(consumer, region.Bytes(), private, l, lane)
	w.Buffers = append(w.Buffers, pump.NewSlots(private, l.Chunk))
	w.Engines = append(w.Engines, engine)
	return engine, engine.postAll()
}

// openProducers opens a sender's end of a window.
func (d deviceMemory) openProducers(ctx context.Context, l Layout, of native.Window) (*Window, error) {
	fast := d.conn.(comch.FastPath)
	ids, err := native.ConsumerIDs(of.Descriptor, uint32(l.Depth))
	if err != nil {
		return nil, err
	}
	if err := comch.AwaitConsumers(ctx, d.conn, fast, ids); err != nil {
		return nil, err
	}
	w := &Window{}
	if err := d.addProducers(w, fast, l, ids); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (d deviceMemory) addProducers(w *Window, fast comch.FastPath, l Layout, consumers []uint32) error {
	region, err := d.addSlots(w, l)
	if err != nil {
		return err
	}
	for range l.Lanes {
		depth := l.LaneSlots(0)
		producer, err := fast.NewProducer(depth)
		if err != nil {
			return fmt.Errorf("starting a producer: %w", err)
		}
		w.AddCloser(producer)
		w.Engines = append(w.Engines, newProducerEngine(producer, region, consumers, l, depth))
	}
	return nil
}

// producerEngine is the pump.Engine of a sender's lane: each move is a message to the consumer of its slot.
type producerEngine struct {
	*doca.Producer
	region    *doca.Region
	consumers []uint32
	chunk     int64
	depth     int
	numbers   [][]byte           // by slot: its immediate data
	pending   []doca.FastMessage // not accepted by the device yet
	ended     []doca.Completion  // reused
}

var _ pump.Engine = (*producerEngine)(nil)

func newProducerEngine(
	producer *doca.Producer, region *doca.Region, consumers []uint32, l Layout, depth int,
) *producerEngine {
	p := &producerEngine{
		Producer: producer, region: region, consumers: consumers, chunk: l.Chunk, depth: depth,
		pending: make([]doca.FastMessage, 0, depth), ended: make([]doca.Completion, depth),
	}
	for slot := range l.Depth {
		p.numbers = append(p.numbers, binary.BigEndian.AppendUint32(nil, uint32(slot)))
	}
	return p
}

// Submit implements pump.Engine.
func (p *producerEngine) Submit(moves []pump.Move) (int, error) {
	moves = moves[:min(len(moves), p.depth-p.Inflight())]
	for _, m := range moves {
		slot := int(m.Window / p.chunk)
		p.pending = append(p.pending, doca.FastMessage{
			To: p.consumers[slot%len(p.consumers)], Source: p.region, Offset: m.Buffer, Length: m.Length,
			Immediate: p.numbers[slot], Tag: uint64(m.Tag),
		})
	}
	return len(moves), p.send(p.Producer.Send)
}

// send has the device accept pending messages. It accepts fewer while it is full, and until the peer's buffers are
// known here.
func (p *producerEngine) send(by func([]doca.FastMessage) (int, error)) error {
	if len(p.pending) == 0 {
		return nil
	}
	n, err := by(p.pending)
	p.pending = p.pending[:copy(p.pending, p.pending[n:])]
	if errors.Is(err, doca.ErrQueueFull) {
		return nil
	}
	return refusedByConsumer(err)
}

// refusedByConsumer returns the error of a message. One that is invalid may mean that its consumer is gone: the device
// may notice the end of the peer before the control channel does.
func refusedByConsumer(err error) error {
	if errors.Is(err, doca.CodeInvalidValue) {
		return fmt.Errorf("a consumer takes no messages (%w): %w", job.ErrPerhapsLost, err)
	}
	return taskFailed(err)
}

// endedByLoss are the errors of tasks that end because their connection has: the device flushes them, or the peer's
// memory is gone. This side itself stops producers and consumers after the lanes only.
var endedByLoss = []error{
	doca.CodeShutdown, doca.CodeNotConnected, doca.CodeConnectionReset, doca.CodeConnectionAborted,
}

// taskFailed returns the error of a task of a producer or consumer.
func taskFailed(err error) error {
	if slices.ContainsFunc(endedByLoss, func(code error) bool { return errors.Is(err, code) }) {
		return fmt.Errorf("%w: the connection has ended (%w)", comch.ErrPeerLost, err)
	}
	return err
}

// Reap implements pump.Engine.
func (p *producerEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	if p.Producer.Inflight() == 0 {
		wait := func(m []doca.FastMessage) (int, error) { return p.Producer.SendWait(ctx, m) }
		if err := p.send(wait); err != nil {
			return 0, err
		}
	}
	n, err := p.Producer.Reap(ctx, p.ended[:min(len(into), len(p.ended))])
	if err == nil {
		err = p.send(p.Producer.Send)
	}
	return p.take(n, into), err
}

// Poll implements pump.Engine. Submit or Reap reports why a message is not sent.
func (p *producerEngine) Poll(into []pump.Moved) int {
	if p.Producer.Inflight() == 0 {
		return 0
	}
	return p.take(p.Producer.Poll(p.ended[:min(len(into), len(p.ended))]), into)
}

func (p *producerEngine) take(n int, into []pump.Moved) int {
	for i, c := range p.ended[:n] {
		into[i] = pump.Moved{Tag: int(c.Tag), Err: refusedByConsumer(c.Err)}
	}
	return n
}

// Inflight implements pump.Engine.
func (p *producerEngine) Inflight() int { return len(p.pending) + p.Producer.Inflight() }

// consumerEngine is the pump.Engine of a receiver's lane. The buffer that a message has arrived in is posted again
// before its slot can be acknowledged, so that there is always one for each slot that the sender may use.
type consumerEngine struct {
	consumer *doca.Consumer
	posted   []byte // the buffers for messages
	chunk    int64
	matcher  *SlotMatcher
	received []doca.Received
	broken   error // why no further message can be taken
}

var _ pump.Engine = (*consumerEngine)(nil)

func newConsumerEngine(consumer *doca.Consumer, posted, private []byte, l Layout, lane int) *consumerEngine {
	c := &consumerEngine{
		consumer: consumer, posted: posted, chunk: l.Chunk, received: make([]doca.Received, l.LaneSlots(lane)),
	}
	c.matcher = NewSlotMatcher(private, l, lane, c.post)
	return c
}

// postAll posts all buffers.
func (c *consumerEngine) postAll() error {
	for buffer := int64(0); buffer < int64(len(c.posted)); buffer += c.chunk {
		if err := c.post(buffer); err != nil {
			return err
		}
	}
	return c.collect()
}

func (c *consumerEngine) post(buffer int64) error {
	_, err := c.consumer.Post([]doca.Receive{{Offset: buffer, Length: c.chunk, Tag: uint64(buffer)}})
	return err
}

// Submit implements pump.Engine.
func (c *consumerEngine) Submit(moves []pump.Move) (int, error) {
	if err := c.matcher.Submit(moves); err != nil {
		return 0, err
	}
	return len(moves), c.collect()
}

// collect takes what has arrived, and makes buffers known to the peer that were posted again.
func (c *consumerEngine) collect() error {
	for {
		if c.broken != nil {
			return c.broken
		}
		n, err := c.consumer.Push(c.received)
		if err != nil {
			return err
		}
		c.take(n)
		if n == 0 {
			return c.broken
		}
	}
}

// take handles messages. The first error is kept.
func (c *consumerEngine) take(n int) {
	for i := range c.received[:n] {
		if err := c.arrive(&c.received[i]); err != nil && c.broken == nil {
			c.broken = err
		}
	}
}

// arrive checks what the peer has sent.
func (c *consumerEngine) arrive(r *doca.Received) error {
	if r.Err != nil {
		return taskFailed(r.Err)
	}
	if len(r.Immediate) != slotNumberSize {
		return c.matcher.Violation("%d bytes of immediate data", len(r.Immediate))
	}
	buffer := int64(r.Tag)
	return c.matcher.Arrive(binary.BigEndian.Uint32(r.Immediate), c.posted[buffer:buffer+r.Length], buffer)
}

// Reap implements pump.Engine.
func (c *consumerEngine) Reap(ctx context.Context, into []pump.Moved) (int, error) {
	for c.matcher.Waits() {
		if c.broken != nil {
			return 0, c.broken
		}
		n, err := c.consumer.Reap(ctx, c.received)
		if err != nil {
			return 0, err
		}
		c.take(n)
	}
	return c.Poll(into), nil
}

// Poll implements pump.Engine. An error is reported by Submit or Reap.
func (c *consumerEngine) Poll(into []pump.Moved) int {
	if c.matcher.Inflight() > 0 {
		_ = c.collect() // keeps the error
	}
	return c.matcher.Take(into)
}

// Inflight implements pump.Engine.
func (c *consumerEngine) Inflight() int { return c.matcher.Inflight() }

// Close implements pump.Engine.
func (c *consumerEngine) Close() error { return c.consumer.Close() }
