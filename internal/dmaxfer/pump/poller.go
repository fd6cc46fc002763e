package pump

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Poller is the lanes' own way to the peer. A message that a lane takes or sends itself, between two chunks, wakes nobody: to be woken
// costs more than most chunks. All methods are safe for concurrent use.
type Poller interface {
	// Poll brings in what the peer has said and sends what is due, unless somebody else is about to.
	Poll()

	// Start promises that Poll will be called again and again, until Stop is called; nobody is woken for a message meanwhile.
	Start()
	Stop()

	// Patience is how many calls of Poll in vain cost less than to sleep and be woken.
	Patience() int
}

// outbox is the part of a Batch that does not depend on what is in it.
type outbox interface {
	Flush()
	Call()
}

// messenger is where a lane exchanges messages with the peer: through its Poller, or through whoever has been waiting for them.
type messenger struct {
	poller    Poller // nil: messages come by themselves, and somebody is called for those that are due
	stages    *Stages
	out       outbox
	seat      *seat
	longWaits int // by how many long sleeps, in a row, polling was in vain
}

func (d *messenger) start() {
	d.seat.take()
	if d.poller != nil {
		d.poller.Start()
	}
}

func (d *messenger) stop() {
	d.poll()
	d.out.Call()
	if d.poller != nil {
		d.poller.Stop()
	}
	d.seat.leave()
}

// attend is for in between two chunks.
func (d *messenger) poll() {
	if d.poller != nil {
		d.poller.Poll()
	} else {
		d.out.Call()
	}
}

// away does what may take long, in which the lane does not attend.
func (d *messenger) whileBlocked(work func() error) error {
	d.out.Flush()
	d.poll()
	d.out.Call()
	if d.poller != nil {
		d.poller.Stop()
		defer d.poller.Start()
	}
	return work()
}

// pace waits until the chunk may be moved. wait may be nil.
func (d *messenger) pace(ctx context.Context, wait func(context.Context, int64) error, chunk *negotiate.Record) error {
	if wait == nil {
		return nil
	}
	return d.whileBlocked(func() error {
		watch := d.stages.start()
		defer watch.charge(RateLimit)
		return wait(ctx, int64(chunk.Length))
	})
}

// patience is how often it is worth polling now: half as often after each long sleep, because the peer takes its time.
func (d *messenger) pollLimit() int {
	if d.poller == nil {
		return 0
	}
	return d.poller.Patience() >> d.longWaits
}

// shortSleep is one that a little more patience would have spared, or a wake-up after it was as long.
const shortSleep = time.Millisecond

// sleep is away, and notes whether it was worth it.
func (d *messenger) sleep(work func() error) error {
	began := time.Now()
	err := d.whileBlocked(work)
	if time.Since(began) < shortSleep {
		d.longWaits = max(0, d.longWaits-1)
	} else {
		d.longWaits = min(d.longWaits+1, 16)
	}
	return err
}

// hesitation is how many calls of Poll a lane waits for the peer before it says what others have not come for: mostly the peer has
// something to say first, and so several chunks go with one message.
const flushAfter = 8

// await receives what the peer says next, or finds the inbox closed. It looks for a while before it sleeps.
func receive[T any](ctx context.Context, d *messenger, inbox <-chan T) (item T, open bool, err error) {
	for n := range d.pollLimit() {
		select {
		case item, open = <-inbox:
			return item, open, nil
		default:
		}
		if n == flushAfter {
			d.out.Flush()
		}
		d.seat.yield()
		d.poller.Poll()
	}
	err = d.sleep(func() error {
		select {
		case item, open = <-inbox:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return item, open, err
}
