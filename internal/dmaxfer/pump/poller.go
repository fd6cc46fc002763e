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

// newMessenger returns the messenger of the lane with this number.
func newMessenger(poller Poller, stages *Stages, out outbox, cpus []int, number int) messenger {
	return messenger{poller: poller, stages: stages, out: out, seat: newSeat(cpus, number)}
}

func (m *messenger) start() {
	m.seat.take()
	if m.poller != nil {
		m.poller.Start()
	}
}

func (m *messenger) stop() {
	m.poll()
	m.out.Call()
	if m.poller != nil {
		m.poller.Stop()
	}
	m.seat.leave()
}

// attend is for in between two chunks.
func (m *messenger) poll() {
	if m.poller != nil {
		m.poller.Poll()
	} else {
		m.out.Call()
	}
}

// away does what may take long, in which the lane does not attend.
func (m *messenger) whileBlocked(work func() error) error {
	m.out.Flush()
	m.poll()
	m.out.Call()
	if m.poller != nil {
		m.poller.Stop()
		defer m.poller.Start()
	}
	return work()
}

// pace waits until the chunk may be moved. wait may be nil.
func (m *messenger) pace(ctx context.Context, wait func(context.Context, int64) error, chunk *negotiate.Record) error {
	if wait == nil {
		return nil
	}
	return m.whileBlocked(func() error {
		watch := m.stages.start()
		defer watch.charge(RateLimit)
		return wait(ctx, int64(chunk.Length))
	})
}

// patience is how often it is worth polling now: half as often after each long sleep, because the peer takes its time.
func (m *messenger) pollLimit() int {
	if m.poller == nil {
		return 0
	}
	return m.poller.Patience() >> m.longWaits
}

// shortSleep is one that a little more patience would have spared, or a wake-up after it was as long.
const shortSleep = time.Millisecond

// sleep is away, and notes whether it was worth it.
func (m *messenger) sleep(work func() error) error {
	began := time.Now()
	err := m.whileBlocked(work)
	if time.Since(began) < shortSleep {
		m.longWaits = max(0, m.longWaits-1)
	} else {
		m.longWaits = min(m.longWaits+1, 16)
	}
	return err
}

// hesitation is how many calls of Poll a lane waits for the peer before it says what others have not come for: mostly the peer has
// something to say first, and so several chunks go with one message.
const flushAfter = 8

// await receives what the peer says next, or finds the inbox closed. It looks for a while before it sleeps.
func receive[T any](ctx context.Context, m *messenger, inbox <-chan T) (item T, open bool, err error) {
	for n := range m.pollLimit() {
		select {
		case item, open = <-inbox:
			return item, open, nil
		default:
		}
		if n == flushAfter {
			m.out.Flush()
		}
		m.seat.yield()
		m.poller.Poll()
	}
	err = m.sleep(func() error {
		select {
		case item, open = <-inbox:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return item, open, err
}
