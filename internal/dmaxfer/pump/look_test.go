package pump

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
)

// smallPair is a copy of more pieces than there are slots, with a lane on either side.
func smallPair() *pair {
	p := newPair(64 * 100)
	p.hostSends, p.lanes, p.slots = true, [2]int{1, 1}, 8
	p.build()
	return p
}

// aSide is one side's way to look, to be set, and its run.
type aSide func(p *pair) (look *Lookout, run func(context.Context) error)

func theSender(p *pair) (*Lookout, func(context.Context) error) {
	return &p.sender.Look, p.sender.Run
}
func theReceiver(p *pair) (*Lookout, func(context.Context) error) {
	return &p.receiver.Look, p.receiver.Run
}

// silent is a pair of which one side runs until it waits for what never comes. It returns how often that side has looked.
func silent(t *testing.T, useful bool, side aSide) (looks int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := smallPair()
		look, run := side(p)
		*look = func() bool {
			looks++
			return useful
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("ended with %v", err)
		}
	})
	return looks
}

// Who sleeps at once is woken for each message; who never sleeps burns a processor beside a slow peer.
func TestWhoWaitsLooksForAWhile(t *testing.T) {
	if looks, want := silent(t, true, theSender), 8+patientLooks; looks != want {
		t.Errorf("the sender looked %d times, not once for each slot and %d times in vain", looks, patientLooks)
	}
	if looks := silent(t, true, theReceiver); looks != patientLooks {
		t.Errorf("the receiver looked %d times, not %d", looks, patientLooks)
	}
}

func TestLookingThatIsOfNoUseEnds(t *testing.T) {
	if looks := silent(t, false, theReceiver); looks != 1 {
		t.Errorf("the receiver looked %d times", looks)
	}
}

// What the peer says needs no other goroutine to come in: the lanes' own looks bring it.
func TestLooksBringWhatThePeerSays(t *testing.T) {
	p := smallPair()
	p.sender.Look = func() bool {
		p.receiver.Take(p.sender.Outbox().Take())
		return true
	}
	p.receiver.Look = func() bool {
		p.sender.Acknowledge(p.receiver.Outbox().Take())
		return true
	}
	received := make(chan error, 1)
	go func() { received <- p.receiver.Run(t.Context()) }()
	must(t, p.sender.Run(t.Context()))
	p.receiver.End()
	must(t, <-received)
	if !bytes.Equal(p.source.bytes, p.target.bytes) {
		t.Error("the bytes arrived changed")
	}
}
