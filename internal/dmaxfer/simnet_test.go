package dmaxfer

import (
	"context"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// network is a control channel with latency: what one end sends arrives later, while both go on.
//
//	host ══ pair ══ near[Host] ── carry ──► near[DPU] ══ pair ══ DPU
//	                           ◄── carry ──
type network struct {
	ends     [2]*comchtest.End // by side, what the copy uses
	near     [2]*comchtest.End // by side, what carry uses
	delivery func(from negotiate.Side, message []byte) delivery
	delay    func() time.Duration
	broken   chan struct{} // closed when what is under way is lost
	once     sync.Once
	carrier  sync.WaitGroup
}

// delivery is what becomes of a message.
type delivery struct {
	message []byte // what arrives
	cut     bool   // the connection ends instead, and takes with it what is under way
	freeze  bool   // nothing arrives any more, and the connection stays
}

// pollingConn is what the connections of these tests are.
type pollingConn interface {
	comch.Conn
	comch.Polling
}

// testMessage is the longest message: short, so that lists go out in parts.
const testMessage = 512

// connect is to be called in the bubble that uses the network.
func connect(delay func() time.Duration, deliver func(from negotiate.Side, message []byte) delivery) *network {
	n := &network{delivery: deliver, delay: delay, broken: make(chan struct{})}
	pair := func() (*comchtest.End, *comchtest.End) {
		return comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	}
	n.ends[negotiate.Host], n.near[negotiate.Host] = pair()
	n.near[negotiate.DPU], n.ends[negotiate.DPU] = pair()
	n.carrier.Go(func() { n.carry(negotiate.Host) })
	n.carrier.Go(func() { n.carry(negotiate.DPU) })
	return n
}

func (n *network) conn(side negotiate.Side) comch.Conn { return n.ends[side] }

// breakDown loses what is under way.
func (n *network) breakDown() {
	n.once.Do(func() {
		close(n.broken)
		_ = n.near[negotiate.Host].Close()
		_ = n.near[negotiate.DPU].Close()
	})
}

// carry brings what one side sends to the other, in order, and in the end the news that there is no more.
func (n *network) carry(from negotiate.Side) {
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

func (n *network) pass(from negotiate.Side, message []byte, out, in *comchtest.End) (goOn bool) {
	select {
	case <-time.After(n.delay()):
	case <-n.broken:
		return false
	}
	f := n.delivery(from, message)
	switch {
	case f.cut:
		n.breakDown()
		return false
	case f.freeze:
		select {
		case <-out.Done():
		case <-in.Done():
		}
		n.breakDown()
		return false
	}
	_ = in.Send(context.Background(), f.message) // an end that has closed does not get it
	return true
}
