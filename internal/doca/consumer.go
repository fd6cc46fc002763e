package doca

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// ConsumerConfig configures a Consumer.
type ConsumerConfig struct {
	Depth     int // messages that can be posted at once, 1 to Capabilities.Consumer.MaxTasks
	Immediate int // bytes of immediate data of one message, 0 to Capabilities.MaxImmediate
}

// Receive is a buffer for one message: Length bytes at Offset of the consumer's Region. With Length 0 it accepts
// immediate data only. Tag is returned in the Received.
type Receive struct {
	Offset, Length int64
	Tag            uint64
}

// Received is the result of the Receive with the same Tag. Err is nil or an *Error; Length bytes were received at the
// Receive's Offset. Immediate is valid until the next Reap, Push or Close.
type Received struct {
	Tag       uint64
	Length    int64
	Producer  uint32
	Immediate []byte
	Err       error
}

// Consumer receives messages of the peer's producers directly into registered memory, in the order in which buffers
// were posted. It is used by one goroutine at a time, which need not be the one that uses the connection.
//
// Source: doca_comch_consumer.
type Consumer struct {
	port   *port
	region *Region
	batch  []cabi.PortTask

	// arrived are completions of the last poll that Reap had no space for, from completion number taken on. It is C's
	// memory, valid until the next poll, which waits until it is empty.
	arrived []cabi.PortCompletion
	taken   int
}

// NewConsumer starts a consumer over region, which must be registered with RemoteWrite on the connection's device and
// stay open until Close. It returns when the peer can be notified of it. Errors: ErrDisconnected, ErrClosed, ctx's
// cause, CodeInvalidValue, *Error. Implements: doca_comch_consumer_create, doca_ctx_start.
func (c *Connection) NewConsumer(ctx context.Context, region *Region, config ConsumerConfig) (*Consumer, error) {
	if config.Immediate < 0 || config.Immediate > math.MaxInt32 {
		return nil, fmt.Errorf("consumer: %d bytes of immediate data: %w", config.Immediate, CodeInvalidValue)
	}
	if region.mmap == nil {
		return nil, fmt.Errorf("consumer: %w", ErrClosed)
	}
	p, err := c.openPort(region.mmap, config.Depth, config.Immediate)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if err := p.awaitRunning(ctx); err != nil {
		return nil, fmt.Errorf("consumer: %w", errors.Join(err, p.close()))
	}
	consumer := &Consumer{port: p, region: region, batch: make([]cabi.PortTask, 0, config.Depth)}
	trackOpen(consumer)
	return consumer, nil
}

// ID returns the id to which the peer's producers send; it is unique on the connection. Implements:
// doca_comch_consumer_get_id.
func (c *Consumer) ID() uint32 { return c.port.id }

// Post posts buffers for messages, in order, and returns how many were accepted. ErrQueueFull: reap, then post the
// rest; there is something to reap. The memory must not be used until the buffer is reaped. Implements:
// doca_task_submit.
func (c *Consumer) Post(receives []Receive) (int, error) {
	if c.port.handle == nil {
		return 0, ErrClosed
	}
	c.batch = c.batch[:0]
	for _, r := range receives[:min(len(receives), c.port.depth)] {
		if r.Length != 0 && !within(r.Offset, r.Length, c.region.Len()) {
			return 0, fmt.Errorf("buffer of %d bytes at %d is outside the consumer's memory: %w",
				r.Length, r.Offset, CodeInvalidValue)
		}
		c.batch = append(c.batch, cabi.PortTask{
			Map: c.region.mmap, Address: c.region.Address() + uint64(r.Offset), Len: uint64(r.Length), Tag: r.Tag,
		})
	}
	n, err := submitAny(c.submitBatch, c.port.inflight)
	if err == nil && n < len(receives) {
		err = ErrQueueFull
	}
	return n, err
}

func (c *Consumer) submitBatch() (int, error) {
	return c.port.abi.PortSubmit(c.port.handle, c.batch, nil)
}

// Inflight returns the number of buffers posted and not yet reaped; 0 after Close.
func (c *Consumer) Inflight() int { return c.port.inflight() + len(c.arrived) }

// Reap waits for at least one message and returns as many as there are, up to len(into), which is at least 1. With
// nothing posted it returns 0. If ctx ends first it returns its cause. When the peer is gone, all buffers are returned
// with an Err. Implements: doca_pe_progress, doca_pe_request_notification.
func (c *Consumer) Reap(ctx context.Context, into []Received) (int, error) {
	return c.port.reap(ctx, func() int { return c.poll(into) })
}

// Push makes posted buffers available to the peer, without waiting for a message, and returns the messages that have
// arrived. Only Push and Reap make them available. len(into) is at least 1; if it is filled, some buffers may not be
// available yet.
func (c *Consumer) Push(into []Received) (int, error) {
	if c.port.handle == nil {
		return 0, ErrClosed
	}
	return c.poll(into), nil
}

func (c *Consumer) poll(into []Received) int {
	if len(c.arrived) == 0 {
		c.arrived, c.taken = c.port.abi.PortPoll(c.port.handle, min(len(into), c.port.depth)), 0
	}
	n := min(len(into), len(c.arrived))
	for i, completion := range c.arrived[:n] {
		into[i] = Received{
			Tag: completion.Tag, Length: int64(completion.Len), Producer: completion.Producer,
			Immediate: c.port.abi.PortImmediate(c.port.handle, c.taken+i),
			Err:       c.port.failure("doca_comch_consumer_task_post_recv", completion.Status),
		}
	}
	c.arrived, c.taken = c.arrived[n:], c.taken+n
	return n
}

// Close stops the consumer, waits until no producer can write into its memory, and frees it; the peer is notified.
// Closing twice is harmless. ErrStillRunning if the device does not stop within 10 s; then nothing is freed.
// Implements: doca_ctx_stop, doca_comch_consumer_destroy.
func (c *Consumer) Close() error {
	c.arrived = nil
	if err := c.port.close(); err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	trackClose(c)
	return nil
}
