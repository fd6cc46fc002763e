package doca

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Copy is one memcpy task: Length bytes from Source at SourceOffset to Target at TargetOffset, followed by the bytes of
// the further ranges More of Source. Each Length is at least 1, and all together are at most the device's
// MaxBufferSize. Tag is returned in the Completion.
type Copy struct {
	Source, Target             Memory
	SourceOffset, TargetOffset int64
	Length                     int64
	Tag                        uint64

	// More has at most Engine.MaxRanges - 1 ranges. Submit does not keep it.
	More []Range
}

// Range is a part of a Memory, in bytes.
type Range struct {
	Offset, Length int64
}

// Completion is the result of the Copy with the same Tag. Err is nil or an *Error; completions come in any order.
type Completion struct {
	Tag uint64
	Err error
}

// Engine copies memory, many tasks in flight. It belongs to one goroutine at a time. After a failed copy the engine
// fails all others and takes no more: reap what is in flight, and close it.
//
// Its states:
//
//	running ──┬─ a copy failed ──► failed: every copy in flight completes with an error, Submit is refused
//	          │                       │ Close
//	          └─ Close ───────────────┴──► stopping ──┬─ all copies completed ──► closed
//	                                                  └─ not within 10 s: ErrStillRunning, Close can be called again
type Engine struct {
	abi    cabi.ABI
	engine cabi.Engine
	waiter *waiter
	batch  []cabi.Copy
	more   []cabi.Range // of batch
	depth  int
	ranges int // of one copy at most

	// arrived are completions of the last poll that Reap had no space for. It is C's memory, valid until the next poll,
	// which waits until it is empty.
	arrived []cabi.Completion
}

// NewEngine starts an engine for up to depth copies in flight, 1 to MaxDepth. Implements: doca_dma_create,
// doca_dma_task_memcpy_set_conf, doca_ctx_start.
func (d *Device) NewEngine(depth int) (*Engine, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	if depth < 1 || depth > math.MaxInt32 {
		return nil, fmt.Errorf("engine for %d copies in flight: %w", depth, CodeInvalidValue)
	}
	ranges := d.maxRanges()
	engine, err := d.abi.EngineOpen(d.dev, uint32(depth), uint32(depth+ranges-1))
	if err != nil {
		return nil, err
	}
	waiter, err := newWaiter(d.abi.Handle(cabi.Progress(engine)))
	if err != nil {
		_ = d.abi.Stop(cabi.Progress(engine))
		_ = d.abi.EngineClose(engine)
		return nil, err
	}
	e := &Engine{
		abi: d.abi, engine: engine, waiter: waiter, batch: make([]cabi.Copy, 0, depth), depth: depth, ranges: ranges,
	}
	trackOpen(e)
	return e, nil
}

// maxRanges returns the number of ranges of one copy: 1 if the device has no lists, or does not report their length.
func (d *Device) maxRanges() int { return min(max(int(d.info.MaxList), 1), maxRanges) }

// MaxRanges returns the maximum number of ranges of the source of one copy; 1: a copy has no More.
func (e *Engine) MaxRanges() int { return e.ranges }

// Depth returns the maximum number of copies in flight.
func (e *Engine) Depth() int { return e.depth }

// Inflight returns the number of copies in flight; 0 after Close.
func (e *Engine) Inflight() int {
	if e.engine == nil {
		return 0
	}
	return e.abi.EngineInflight(e.engine) + len(e.arrived)
}

// Submit submits copies to the device, in order, and returns how many it accepted. ErrQueueFull: reap, then submit the
// rest; there is something to reap. If they have many ranges, fewer copies than Depth may fill the queue. The memory of
// accepted copies must be neither used nor closed until their completions are reaped. Implements: doca_task_submit,
// doca_buf_chain_list.
func (e *Engine) Submit(copies []Copy) (int, error) {
	if e.engine == nil {
		return 0, ErrClosed
	}
	e.batch, e.more = e.batch[:0], e.more[:0]
	for i := range copies[:min(len(copies), e.depth)] {
		if err := e.translate(&copies[i]); err != nil {
			return 0, err
		}
	}
	n, err := submitAny(e.submitBatch, e.Inflight)
	failed := errors.Is(err, CodeBadState) && len(e.arrived) > 0 // its completion is there
	if failed || err == nil && n < len(copies) {
		err = ErrQueueFull
	}
	return n, err
}

func (e *Engine) submitBatch() (int, error) { return e.abi.EngineSubmit(e.engine, e.batch, e.more) }

// translate adds a copy to the batch.
func (e *Engine) translate(c *Copy) error {
	source, sourceBase := c.Source.mapping()
	target, targetBase := c.Target.mapping()
	if source == nil || target == nil {
		return fmt.Errorf("memory of a copy: %w", ErrClosed)
	}
	if !within(c.SourceOffset, c.Length, c.Source.Len()) || !within(c.TargetOffset, c.Length, c.Target.Len()) {
		return fmt.Errorf("copy of %d bytes from %d to %d is outside its memory: %w",
			c.Length, c.SourceOffset, c.TargetOffset, CodeInvalidValue)
	}
	if err := e.translateMore(c, sourceBase); err != nil {
		return err
	}
	e.batch = append(e.batch, cabi.Copy{
		SourceMap: source, TargetMap: target,
		Source: sourceBase + uint64(c.SourceOffset), Target: targetBase + uint64(c.TargetOffset),
		Len: uint64(c.Length), Tag: c.Tag, More: uint64(len(c.More)),
	})
	return nil
}

// translateMore adds the further ranges of a copy to the ranges of the batch.
func (e *Engine) translateMore(c *Copy, base uint64) error {
	if len(c.More) >= e.ranges {
		return fmt.Errorf("copy of %d ranges, of %d at most: %w", 1+len(c.More), e.ranges, CodeInvalidValue)
	}
	end := c.TargetOffset + c.Length
	for _, r := range c.More {
		if !within(r.Offset, r.Length, c.Source.Len()) || !within(end, r.Length, c.Target.Len()) {
			return fmt.Errorf("copy of %d bytes from %d to %d is outside its memory: %w",
				r.Length, r.Offset, end, CodeInvalidValue)
		}
		end += r.Length
		e.more = append(e.more, cabi.Range{Source: base + uint64(r.Offset), Len: uint64(r.Length)})
	}
	return nil
}

func within(offset, length, size int64) bool {
	return offset >= 0 && length > 0 && offset <= size && length <= size-offset
}

// Reap waits for at least one completion and returns as many as there are, up to len(into), which is at least 1. With
// nothing in flight it returns 0. If ctx ends first it returns its cause. Implements: doca_pe_progress,
// doca_pe_request_notification.
func (e *Engine) Reap(ctx context.Context, into []Completion) (int, error) {
	if e.engine == nil {
		return 0, ErrClosed
	}
	for {
		if n := e.spin(into); n > 0 || e.Inflight() == 0 {
			return n, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if n, err := e.sleep(ctx, into); n > 0 || err != nil {
			return n, err
		}
	}
}

// spin polls until there is a completion, nothing is in flight, or spinTime has passed.
func (e *Engine) spin(into []Completion) int {
	for start := (time.Time{}); ; {
		for range spinPolls {
			if n := e.poll(into); n > 0 || e.Inflight() == 0 {
				return n
			}
		}
		if now := time.Now(); start.IsZero() {
			start = now
		} else if now.Sub(start) > spinTime {
			return 0
		}
	}
}

// Poll returns the available completions, up to len(into), without waiting. One progress of the device may bring more.
// Implements: doca_pe_progress.
func (e *Engine) Poll(into []Completion) int {
	if e.engine == nil {
		return 0
	}
	return e.poll(into)
}

func (e *Engine) poll(into []Completion) int {
	if len(e.arrived) == 0 {
		e.arrived = e.abi.EnginePoll(e.engine, min(len(into), e.depth))
	}
	n := min(len(into), len(e.arrived))
	for i, c := range e.arrived[:n] {
		into[i] = Completion{Tag: c.Tag, Err: e.copyError(c.Status)}
	}
	e.arrived = e.arrived[n:]
	return n
}

func (e *Engine) copyError(status cabi.Status) error {
	if status == cabi.Success {
		return nil
	}
	return &Error{Op: "doca_dma_task_memcpy", Code: status, Detail: e.abi.LastDetail()}
}

// sleep waits on the notification handle. Completions from before arming are returned at once, but of one copy only:
// progress of an armed engine is slow, and if it took longer than the device for a copy, the poll would not end before
// nothing is in flight. A stopped engine has no more notifications.
func (e *Engine) sleep(ctx context.Context, into []Completion) (int, error) {
	if err := e.abi.Arm(cabi.Progress(e.engine)); err != nil {
		return 0, err
	}
	if n := e.poll(into[:1]); n > 0 || e.isIdle() {
		return n, e.abi.Clear(cabi.Progress(e.engine))
	}
	err := e.waiter.waitWith(ctx)
	if clearErr := e.abi.Clear(cabi.Progress(e.engine)); err == nil {
		err = clearErr
	}
	return 0, err
}

// Close stops the engine, waits until all copies have completed, and frees it. ErrStillRunning if they do not within 10
// s; then nothing is freed, and the memory of the copies stays registered. Implements: doca_ctx_stop, doca_dma_destroy.
func (e *Engine) Close() error {
	if e.engine == nil {
		return nil
	}
	if err := e.drain(); err != nil {
		return err
	}
	if err := e.abi.EngineClose(e.engine); err != nil {
		return err
	}
	e.engine, e.arrived = nil, nil
	trackClose(e)
	return e.waiter.close()
}

func (e *Engine) isIdle() bool { return e.abi.State(cabi.Progress(e.engine)) == cabi.Idle }

func (e *Engine) drain() error {
	if err := e.abi.Stop(cabi.Progress(e.engine)); err != nil {
		return err
	}
	dropped := make([]Completion, e.depth)
	if !awaitIdle(time.Now().Add(drainTime), e.isIdle, func() bool { return e.poll(dropped) > 0 }) {
		return fmt.Errorf("copy engine with %d copies in flight: %w", e.Inflight(), ErrStillRunning)
	}
	return nil
}
