package pump

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Poller is the lanes' own way to the peer. A message that a lane takes or sends itself, between two pieces, wakes nobody: to be woken
// costs more than most pieces. All methods are safe for concurrent use.
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

// desk is where a lane exchanges messages with the peer: through its Poller, or through whoever has been waiting for them.
type desk struct {
	poller Poller // nil: messages come by themselves, and somebody is called for those that are due
	stages *Stages
	out    outbox
	seat   *seat
	vain   int // by how many long sleeps, in a row, polling was in vain
}

func (d *desk) take() {
	d.seat.take()
	if d.poller != nil {
		d.poller.Start()
	}
}

func (d *desk) leave() {
	d.attend()
	d.out.Call()
	if d.poller != nil {
		d.poller.Stop()
	}
	d.seat.leave()
}

// attend is for in between two pieces.
func (d *desk) attend() {
	if d.poller != nil {
		d.poller.Poll()
	} else {
		d.out.Call()
	}
}

// away does what may take long, in which the lane does not attend.
func (d *desk) away(work func() error) error {
	d.out.Flush()
	d.attend()
	d.out.Call()
	if d.poller != nil {
		d.poller.Stop()
		defer d.poller.Start()
	}
	return work()
}

// pace waits until the piece may be moved. wait may be nil.
func (d *desk) pace(ctx context.Context, wait func(context.Context, int64) error, piece *negotiate.Record) error {
	if wait == nil {
		return nil
	}
	return d.away(func() error {
		watch := d.stages.start()
		defer watch.charge(RateLimit)
		return wait(ctx, int64(piece.Length))
	})
}

// patience is how often it is worth polling now: half as often after each long sleep, because the peer takes its time.
func (d *desk) patience() int {
	if d.poller == nil {
		return 0
	}
	return d.poller.Patience() >> d.vain
}

// shortSleep is one that a little more patience would have spared, or a wake-up after it was as long.
const shortSleep = time.Millisecond

// sleep is away, and notes whether it was worth it.
func (d *desk) sleep(work func() error) error {
	began := time.Now()
	err := d.away(work)
	if time.Since(began) < shortSleep {
		d.vain = max(0, d.vain-1)
	} else {
		d.vain = min(d.vain+1, 16)
	}
	return err
}

// hesitation is how many calls of Poll a lane waits for the peer before it says what others have not come for: mostly the peer has
// something to say first, and so several pieces go with one message.
const hesitation = 8

// await receives what the peer says next, or finds the inbox closed. It looks for a while before it sleeps.
func await[T any](ctx context.Context, d *desk, inbox <-chan T) (item T, open bool, err error) {
	for n := range d.patience() {
		select {
		case item, open = <-inbox:
			return item, open, nil
		default:
		}
		if n == hesitation {
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
