package dmaxfertest

import (
	"context"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Network is a control channel with latency: what one end sends arrives later, while both go on.
//
//	host ══ pair ══ near[Host] ── carry ──► near[DPU] ══ pair ══ DPU
//	                           ◄── carry ──
type Network struct {
	ends     [2]*comchtest.End // by side, what the copy uses
	near     [2]*comchtest.End // by side, what carry uses
	delivery func(from wire.Side, message []byte) Delivery
	delay    func() time.Duration
	broken   chan struct{} // closed when what is under way is lost
	once     sync.Once
	carrier  sync.WaitGroup
}

// Delivery is what becomes of a message.
type Delivery struct {
	Message []byte // what arrives
	Cut     bool   // the connection ends instead, and takes with it what is under way
	Freeze  bool   // nothing arrives any more, and the connection stays
}

// Connect connects the host and the DPU for messages of up to maxMessage bytes, each with a delay. deliver is called
// for each message, by one goroutine for each side. Connect is to be called in the bubble that uses the network.
func Connect(
	maxMessage int, delay func() time.Duration, deliver func(from wire.Side, message []byte) Delivery,
) *Network {
	n := &Network{delivery: deliver, delay: delay, broken: make(chan struct{})}
	pair := func() (*comchtest.End, *comchtest.End) {
		return comchtest.NewPair(maxMessage, comchtest.Faultless, comchtest.Faultless)
	}
	n.ends[wire.Host], n.near[wire.Host] = pair()
	n.near[wire.DPU], n.ends[wire.DPU] = pair()
	n.carrier.Go(func() { n.carry(wire.Host) })
	n.carrier.Go(func() { n.carry(wire.DPU) })
	return n
}

// Conn returns what a side uses.
func (n *Network) Conn(side wire.Side) comch.Conn { return n.ends[side] }

// Wait returns when both sides have closed their ends, or the connection has ended, and nothing more is carried.
func (n *Network) Wait() { n.carrier.Wait() }

// BreakDown ends the connection and loses what is under way.
func (n *Network) BreakDown() {
	n.once.Do(func() {
		close(n.broken)
		_ = n.near[wire.Host].Close()
		_ = n.near[wire.DPU].Close()
	})
}

// carry brings what one side sends to the other, in order, and in the end the news that there is no more.
func (n *Network) carry(from wire.Side) {
	out, in := n.near[from], n.near[from.Other()]
	for {
		message, err := out.Recv(context.Background())
		if err != nil {
			_ = in.Close()
			return
		}
		if !n.pass(from, message, out, in) {
			return
		}
	}
}

func (n *Network) pass(from wire.Side, message []byte, out, in *comchtest.End) (goOn bool) {
	select {
	case <-time.After(n.delay()):
	case <-n.broken:
		return false
	}
	f := n.delivery(from, message)
	switch {
	case f.Cut:
		n.BreakDown()
		return false
	case f.Freeze:
		select {
		case <-out.Done():
		case <-in.Done():
		}
		n.BreakDown()
		return false
	}
	_ = in.Send(context.Background(), f.Message) // an end that has closed does not get it
	return true
}
