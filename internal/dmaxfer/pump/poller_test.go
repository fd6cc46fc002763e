package pump

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// smallPair returns a transfer of more chunks than slots, with one lane on each side.
func smallPair() *pair {
	p := newPair(64 * 100)
	p.hostSends, p.lanes, p.slots = true, [2]int{1, 1}, 8
	p.build()
	return p
}

// countingPoller counts calls of Poll, and calls exchange if it is set.
type countingPoller struct {
	polls     int
	spinLimit int
	exchange  func()
}

func (c *countingPoller) Poll() {
	c.polls++
	if c.exchange != nil {
		c.exchange()
	}
}
func (c *countingPoller) SpinLimit() int { return c.spinLimit }

// sideUnderTest returns the address of one side's Poller, and its Run.
type sideUnderTest func(p *pair) (poller *Poller, run func(context.Context) error)

func senderSide(p *pair) (*Poller, func(context.Context) error) {
	return &p.sender.lanes[0].peer.poller, p.sender.Run
}

func receiverSide(p *pair) (*Poller, func(context.Context) error) {
	return &p.receiver.lanes[0].peer.poller, p.receiver.Run
}

// A lane that sleeps at once is woken for each message, and one that never sleeps uses a CPU while the peer is slow.
func TestWaitingLanePollsForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		side sideUnderTest
		busy int // polls while there is work
	}{"sender": {senderSide, 8}, "receiver": {receiverSide, 0}} {
		synctest.Test(t, func(t *testing.T) {
			p, polled := smallPair(), &countingPoller{spinLimit: 50}
			poller, run := c.side(p)
			*poller = polled
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx) }()
			synctest.Wait()
			if want := c.busy + 1 + 50; polled.polls != want {
				t.Errorf("the %s polled %d times, want %d while it works, 1 before it waits, and 50 while it waits",
					name, polled.polls, c.busy)
			}
			cancel()
			if err := <-ended; err != context.Canceled {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// The number of polls decreases while the peer is slow.
func TestSpinningForASlowPeerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polled := &countingPoller{spinLimit: 64}
		d := &messenger{poller: polled, out: NewBatch[int](1, 1), cpu: newLaneCPU(nil, 0)}
		inbox := make(chan int, 1)
		for wait := range 10 {
			polled.polls = 0
			time.AfterFunc(time.Second, func() { inbox <- wait })
			if got, _, err := receive(t.Context(), d, inbox, nil); got != wait || err != nil {
				t.Fatalf("received %d, %v", got, err)
			}
			if want := 64>>wait + 1; polled.polls != want {
				t.Errorf("wait %d: polled %d times, not %d", wait, polled.polls, want)
			}
		}
		for range 10 {
			time.AfterFunc(100*time.Microsecond, func() { inbox <- 7 })
			if got, _, err := receive(t.Context(), d, inbox, nil); got != 7 || err != nil {
				t.Fatalf("received %d, %v", got, err)
			}
		}
		if d.pollLimit() != 64 {
			t.Errorf("the peer is fast again, but the limit is %d polls", d.pollLimit())
		}
	})
}

// Items are due when a lane sleeps, even if its Poller has not sent them.
func TestSleepingLaneNotifiesTheCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := smallPair()
		p.sender.lanes[0].peer.poller = &countingPoller{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.sender.Run(ctx) }()
		synctest.Wait()
		select {
		case <-p.announced.Waiting():
		default:
			t.Error("there is no notification")
		}
		cancel()
		<-ended
	})
}

// A transfer needs no goroutine but the lanes: each exchanges all messages.
func TestPollersNeedNoCarrier(t *testing.T) {
	p := smallPair()
	var exchanging sync.Mutex
	exchange := func() {
		exchanging.Lock()
		defer exchanging.Unlock()
		p.deliverAnnounced()
		p.deliverReplies()
	}
	p.sender.lanes[0].peer.poller = &countingPoller{spinLimit: 1 << 30, exchange: exchange}
	p.receiver.lanes[0].peer.poller = &countingPoller{spinLimit: 1 << 30, exchange: exchange}
	received := make(chan error, 1)
	go func() { received <- p.receiver.Run(t.Context()) }()
	must(t, p.sender.Run(t.Context()))
	p.receiver.End()
	must(t, <-received)
	if !bytes.Equal(p.source.bytes, p.target.bytes) {
		t.Error("the bytes arrived changed")
	}
}

// A lane that polls is woken like one that sleeps.
func TestWakeEndsPolling(t *testing.T) {
	polled := &countingPoller{spinLimit: 1 << 30}
	m := &messenger{poller: polled, out: NewBatch[int](1, 1), cpu: newLaneCPU(nil, 0)}
	wake := make(chan struct{}, 1)
	polled.exchange = func() {
		if polled.polls == 3 {
			wake <- struct{}{}
		}
	}
	_, what, err := receive(t.Context(), m, make(chan int), wake)
	if what != arrivedWake || err != nil || polled.polls != 3 || len(wake) != 0 {
		t.Errorf("arrival %d, error %v after %d polls, %d tokens left", what, err, polled.polls, len(wake))
	}
}
