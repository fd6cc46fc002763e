package dmaxfer

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// flood is a Conn that delivers nothing but heartbeats, from the first record until the test gives up.
type flood struct {
	comch.Conn
	on    atomic.Bool
	over  atomic.Bool
	beats atomic.Int64
	high  chan struct{} // closed once there have been so many that lanes have had some
}

func (f *flood) TryRecv() ([]byte, bool) {
	if !f.on.Load() || f.over.Load() {
		message, received := f.Conn.TryRecv()
		if received && binary.LittleEndian.Uint32(message) == uint32(wire.TypeChunks) {
			f.on.Store(true)
		}
		return message, received
	}
	if f.beats.Add(1) == 20_000 {
		close(f.high)
	}
	return native.AppendBeat(nil, native.Beat{Phase: 15, Work: 1}), true
}

// A peer that has always something to say keeps neither lanes nor their owner from ending.
func TestFloodKeepsNoCopyOpen(t *testing.T) {
	bothSides(t, func(t *testing.T, sender wire.Side) {
		sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
		sc.Idle = time.Minute // heartbeats are no progress
		a := newAttempt(sc, sc.newDisks(), fault{})
		f := &flood{high: make(chan struct{})}
		a.conn = func(side wire.Side, conn comch.Conn) comch.Conn {
			if side == sender {
				return conn
			}
			f.Conn = conn
			return f
		}
		go func() {
			<-f.high
			a.stop[sender.Other()](errInterrupted)
		}()
		giveUp := time.AfterFunc(20*time.Second, func() { f.over.Store(true) })
		e := a.run()
		if !giveUp.Stop() {
			t.Error("it ended when the flood did")
		}
		mustBe(t, e.errs[sender.Other()], errInterrupted)
	})
}
