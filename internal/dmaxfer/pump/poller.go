package pump

import (
	"context"
	"time"
)

// Poller lets lanes exchange messages with the peer themselves: to wait for another goroutine would take longer than
// most chunks. All methods are safe for concurrent use.
type Poller interface {
	// Poll receives pending messages and sends what is due, unless another lane is doing so.
	Poll()

	// SpinLimit returns how many calls of Poll without result cost less than sleeping and being woken.
	SpinLimit() int
}

// outbox has the methods of Batch that do not depend on its item type.
type outbox interface {
	Flush()
	Call()
}

// messenger is a lane's connection to the peer: through its Poller, or through the goroutine that waits on the
// outbox.
type messenger struct {
	poller    Poller // nil: another goroutine carries the messages and is notified of due items
	stages    *Stages
	out       outbox
	cpu       *laneCPU
	longWaits int // number of consecutive long sleeps, in which polling was useless
}

// newMessenger returns the messenger of the lane with this number.
func newMessenger(poller Poller, stages *Stages, out outbox, pinning Pinning, number int) messenger {
	return messenger{poller: poller, stages: stages, out: out, cpu: newLaneCPU(pinning, number)}
}

// start is called when the lane begins its work.
func (m *messenger) start() { m.cpu.pin() }

// stop is called when the lane ends.
func (m *messenger) stop() {
	m.poll()
	m.out.Call()
	m.cpu.unpin()
}

// poll exchanges messages; it is called between two chunks.
func (m *messenger) poll() {
	if m.poller != nil {
		m.poller.Poll()
	} else {
		m.out.Call()
	}
}

// whileBlocked runs work that may take long and during which the lane does not poll.
func (m *messenger) whileBlocked(work func() error) error {
	m.out.Flush()
	m.poll()
	m.out.Call()
	return work()
}

// pace waits until the bandwidth limit allows so many bytes. wait may be nil.
func (m *messenger) pace(ctx context.Context, wait func(context.Context, int64) error, bytes int64) error {
	if wait == nil {
		return nil
	}
	return m.whileBlocked(func() error {
		watch := m.stages.start()
		defer watch.charge(RateLimit)
		return wait(ctx, bytes)
	})
}

// pollLimit returns how many times to poll before sleeping. Each long sleep in a row halves it, because the peer is
// slow then.
func (m *messenger) pollLimit() int {
	if m.poller == nil {
		return 0
	}
	return m.poller.SpinLimit() >> m.longWaits
}

// sleep is whileBlocked, and updates longWaits.
func (m *messenger) sleep(work func() error) error {
	began := time.Now()
	err := m.whileBlocked(work)
	if time.Since(began) < shortSleep {
		m.longWaits = max(0, m.longWaits-1)
	} else {
		m.longWaits = min(m.longWaits+1, maxHalvings)
	}
	return err
}

// arrival is what a lane has waited for.
type arrival int

const (
	arrivedItem arrival = iota
	arrivedEnd          // the inbox is closed
	arrivedWake         // the lane is to look around
)

// receive returns the next item that the peer sends, unless the inbox is closed or wake delivers a token before; wake
// may be nil. It polls for a while before it sleeps.
func receive[T any](ctx context.Context,
	m *messenger, inbox <-chan T, wake <-chan struct{},
) (item T, what arrival, err error) {
	var open bool
	for n := range m.pollLimit() {
		select {
		case item, open = <-inbox:
			return item, itemOrEnd(open), nil
		default:
		}
		if len(wake) > 0 {
			<-wake
			return item, arrivedWake, nil
		}
		if n == flushAfter {
			m.out.Flush()
		}
		m.cpu.yield()
		m.poller.Poll()
	}
	err = m.sleep(func() error {
		select {
		case item, open = <-inbox:
			what = itemOrEnd(open)
			return nil
		case <-wake:
			what = arrivedWake
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return item, what, err
}

func itemOrEnd(open bool) arrival {
	if open {
		return arrivedItem
	}
	return arrivedEnd
}
