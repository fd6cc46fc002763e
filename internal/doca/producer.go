package doca

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// FastMessage is a message to the consumer To of the peer: Length bytes at Offset of Source, immediate data, or both.
// Immediate is copied; the bytes must not be changed until the Completion with the same Tag.
type FastMessage struct {
	To             uint32
	Source         *Region
	Offset, Length int64
	Immediate      []byte
	Tag            uint64
}

// Producer sends messages to consumers of the peer, directly into the buffers that they have posted. Messages of one
// producer to one consumer arrive in order. It is used by one goroutine at a time.
//
// Source: doca_comch_producer.
type Producer struct {
	port      *port
	batch     []cabi.PortTask
	immediate []byte
	arrived   []Completion // and not yet reaped: without space in Reap, or during SendWait
}

// NewProducer starts a producer for up to depth messages in flight, 1 to Capabilities.Producer.MaxTasks. Errors:
// ErrDisconnected, ErrClosed, CodeInvalidValue, *Error. Implements: doca_comch_producer_create, doca_ctx_start.
func (c *Connection) NewProducer(depth int) (*Producer, error) {
	p, err := c.openPort(nil, depth, 0)
	if err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	producer := &Producer{port: p, batch: make([]cabi.PortTask, 0, depth)}
	trackOpen(producer)
	return producer, nil
}

// ID returns the id that consumers see as Received.Producer. Implements: doca_comch_producer_get_id.
func (p *Producer) ID() uint32 { return p.port.id }

// Send submits messages to the device, in order, and returns how many it accepted. ErrQueueFull: the maximum is in
// flight, or the consumer of the next message has posted no buffer. CodeInvalidValue: the next message does not fit
// into that buffer, or its consumer has expired. Implements: doca_comch_producer_task_send_alloc_init,
// doca_task_submit.
func (p *Producer) Send(messages []FastMessage) (int, error) {
	if p.port.handle == nil {
		return 0, ErrClosed
	}
	if err := p.translate(messages[:min(len(messages), p.port.depth)]); err != nil {
		return 0, err
	}
	n, err := p.port.abi.PortSubmit(p.port.handle, p.batch, p.immediate)
	if err == nil && n < len(messages) {
		err = ErrQueueFull
	}
	return n, err
}

func (p *Producer) translate(messages []FastMessage) error {
	p.batch, p.immediate = p.batch[:0], p.immediate[:0]
	for i := range messages {
		m := &messages[i]
		if len(m.Immediate) > math.MaxInt32-len(p.immediate) {
			return fmt.Errorf("%d bytes of immediate data: %w", len(m.Immediate), CodeInvalidValue)
		}
		task := cabi.PortTask{
			To: m.To, Tag: m.Tag, ImmediateOffset: uint32(len(p.immediate)), ImmediateLen: uint32(len(m.Immediate)),
		}
		if m.Length != 0 {
			if m.Source == nil || !within(m.Offset, m.Length, m.Source.Len()) {
				return fmt.Errorf("message of %d bytes at %d is outside its memory: %w",
					m.Length, m.Offset, CodeInvalidValue)
			}
			task.Map, task.Address = m.Source.mmap, m.Source.Address()+uint64(m.Offset)
			task.Len = uint64(m.Length)
		}
		p.immediate = append(p.immediate, m.Immediate...)
		p.batch = append(p.batch, task)
	}
	return nil
}

// SendWait is Send, but waits until at least one message is accepted. It returns ErrQueueFull only when completions
// must be reaped first. If ctx or the connection ends first it returns the cause.
func (p *Producer) SendWait(ctx context.Context, messages []FastMessage) (int, error) {
	pause := minRetryPause
	for {
		n, err := p.Send(messages)
		if n > 0 || !errors.Is(err, ErrQueueFull) || p.Inflight() >= p.port.depth {
			return n, err
		}
		p.collect()
		if err := p.pause(ctx, pause); err != nil {
			return 0, err
		}
		pause = min(2*pause, maxRetryPause)
	}
}

func (p *Producer) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.port.connection.ended:
		return p.port.connection.cause
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// collect progresses the messages in flight, and keeps completions for Reap.
func (p *Producer) collect() {
	for _, c := range p.port.abi.PortPoll(p.port.handle, p.port.depth) {
		err := p.port.failure("doca_comch_producer_task_send", c.Status)
		p.arrived = append(p.arrived, Completion{Tag: c.Tag, Err: err})
	}
}

// Inflight returns the number of messages accepted and not yet reaped; 0 after Close.
func (p *Producer) Inflight() int { return p.port.inflight() + len(p.arrived) }

// Reap waits for at least one completion and returns as many as there are, up to len(into), which is at least 1. With
// nothing in flight it returns 0. If ctx ends first it returns its cause. Implements: doca_pe_progress,
// doca_pe_request_notification.
func (p *Producer) Reap(ctx context.Context, into []Completion) (int, error) {
	return p.port.reap(ctx, func() int { return p.poll(into) })
}

// Poll is Reap without waiting.
func (p *Producer) Poll(into []Completion) int {
	if p.port.handle == nil {
		return 0
	}
	return p.poll(into)
}

func (p *Producer) poll(into []Completion) int {
	if len(p.arrived) == 0 {
		p.collect()
	}
	n := copy(into, p.arrived)
	p.arrived = p.arrived[:copy(p.arrived, p.arrived[n:])]
	return n
}

// Close stops the producer, waits until all messages have completed, and frees it. Closing twice is harmless.
// ErrStillRunning if they do not within 10 s; then nothing is freed. Implements: doca_ctx_stop,
// doca_comch_producer_destroy.
func (p *Producer) Close() error {
	if err := p.port.close(); err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	p.arrived = nil
	trackClose(p)
	return nil
}
