package doca

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// ConsumerConfig sets up a Consumer.
type ConsumerConfig struct {
	Depth     int // messages that can be awaited at once, 1 to Capabilities.Consumer.MaxTasks
	Immediate int // bytes of immediate data of one message, 0 to Capabilities.MaxImmediate
}

// Receive is room for one message: Length bytes at Offset of the consumer's Region. Length 0 takes immediate data only.
// Tag comes back in the Received.
type Receive struct {
	Offset, Length int64
	Tag            uint64
}

// Received is the end of the Receive with the same Tag. Err is nil or an *Error; what was received has Length bytes at
// the Receive's Offset. Immediate is valid until the next Reap, Push or Close.
type Received struct {
	Tag       uint64
	Length    int64
	Producer  uint32
	Immediate []byte
	Err       error
}

// Consumer receives messages from the peer's producers straight into registered memory, in the order in which the room
// was posted. It belongs to one goroutine at a time, which needs not be the connection's user.
//
// Source: doca_comch_consumer.
type Consumer struct {
	port   *port
	region *Region
	batch  []cabi.Receive

	// arrived is what one poll has brought and Reap had no room for, from its completion number taken on. It is C's
	// memory, valid until the next poll, which waits until it is empty.
	arrived []cabi.PortCompletion
	taken   int
}

// NewConsumer starts a consumer over region, which must have been registered with RemoteWrite on the connection's device
// and stay open until Close. It returns when the peer can be told of it. Errors: ErrDisconnected, ErrClosed, ctx's cause,
// CodeInvalidValue, *Error. Implements: doca_comch_consumer_create, doca_ctx_start.
func (c *Connection) NewConsumer(ctx context.Context, region *Region, config ConsumerConfig) (*Consumer, error) {
	if config.Immediate < 0 || config.Immediate > math.MaxInt32 {
		return nil, fmt.Errorf("consumer: %d bytes of immediate data: %w", config.Immediate, CodeInvalidValue)
	}
	p, err := c.openPort(config.Depth, func(on cabi.Connection) (cabi.Port, error) {
		return c.endpoint.abi.ConsumerOpen(on, region.mmap, uint32(config.Depth), uint32(config.Immediate))
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if err := p.awaitRunning(ctx); err != nil {
		return nil, fmt.Errorf("consumer: %w", errors.Join(err, p.close()))
	}
	consumer := &Consumer{port: p, region: region, batch: make([]cabi.Receive, 0, config.Depth)}
	trackOpen(consumer)
	return consumer, nil
}

// ID is what the peer's producers send to; unique on the connection. Implements: doca_comch_consumer_get_id.
func (c *Consumer) ID() uint32 { return c.port.id }

// Post offers room for messages, in order, and says how much of it was taken. ErrQueueFull: reap, then post the rest; there is
// something to reap. The memory must not be touched until it comes back. Implements: doca_task_submit.
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
		c.batch = append(c.batch, cabi.Receive{
			Address: c.region.Address() + uint64(r.Offset), Len: uint64(r.Length), Tag: r.Tag,
		})
	}
	n, err := submitAny(c.submitBatch, c.port.inflight)
	if err == nil && n < len(receives) {
		err = ErrQueueFull
	}
	return n, err
}

func (c *Consumer) submitBatch() (int, error) { return c.port.abi.ConsumerPost(c.port.handle, c.batch) }

// Inflight is how much room was posted and not yet reaped: none after Close.
func (c *Consumer) Inflight() int {
	if c.port.handle == nil {
		return 0
	}
	return c.port.inflight() + len(c.arrived)
}

// Reap waits for at least one message and returns as many as have come, up to len(into), which is at least one. With
// nothing posted it returns 0. ctx ends the wait with its cause. When the peer is gone, all room comes back with an Err. Implements:
// doca_pe_progress, doca_pe_request_notification.
func (c *Consumer) Reap(ctx context.Context, into []Received) (int, error) {
	return c.port.reap(ctx, func() int { return c.poll(into) })
}

// Push offers to the peer what was posted, without waiting for a message, and returns the messages that have come. Room
// that was posted reaches the peer only by Push or Reap; into has room for at least one message, and where it is filled
// some room may still be waiting.
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

// Close stops the consumer, waits until no producer can write into its memory, and frees it; the peer is told. Closing
// twice is harmless. ErrStillRunning if the device does not let go within ten seconds; then nothing is freed. Implements:
// doca_ctx_stop, doca_comch_consumer_destroy.
func (c *Consumer) Close() error {
	c.arrived = nil
	if err := c.port.close(); err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	trackClose(c)
	return nil
}
