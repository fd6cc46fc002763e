//go:build cgo

package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Whatever order known messages come in, and whichever of their bytes are changed, the server ends that connection or
// serves it, without a defect.
func TestRandomMessages(t *testing.T) {
	place := protocol.Place{Share: "box", Path: "a"}
	messages := [][]byte{
		greeting(), pushMessage("a"), heartbeat(), wire.AppendEmpty(nil, wire.TypeClose), protocol.AppendWorking(nil,
			1),
		copyMessage(protocol.CopyPull, protocol.CopyUnknown, place, 0),
		protocol.AppendList(nil, protocol.ListRequest{Place: place}),
		protocol.AppendList(nil, protocol.ListRequest{}),
		listMessage(wire.TypeRemove, 1, "\x03\x00\x00\x01boxa\x00\x01b"), listMessage(wire.TypeItems, 1, excludeX),
		protocol.AppendPing(nil, protocol.Ping{Payload: []byte("p")}),
		native.AppendAbort(nil, wire.AbortFailure, "no"), []byte("garbage"),
	}
	var refused atomic.Int64
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { tryMessages(t, seed, messages, &refused) })
	}
	if refused.Load() < 10 {
		t.Errorf("only %d of the messages were refused", refused.Load())
	}
}

// tryMessages sends some of the messages at random.
func tryMessages(t *testing.T, seed uint64, messages [][]byte, refused *atomic.Int64) {
	inWorld(t, func(w *world) { w.remote.Put("/srv/box/a", "content") }, func(w *world) {
		random := rand.New(rand.NewPCG(seed, 0))
		a := w.attack().greet()
		for range 1 + random.IntN(8) {
			message := slices.Clone(messages[random.IntN(len(messages))])
			if random.IntN(3) == 0 {
				message[random.IntN(len(message))] ^= 1 << random.IntN(8)
			}
			if random.IntN(3) == 0 {
				synctest.Wait()
			}
			a.send(message)
		}
		synctest.Wait()
		for {
			message, received := a.conn.TryRecv()
			if !received {
				break
			}
			if messageType(message) == wire.TypeRefused {
				refused.Add(1)
			}
		}
		must(w.T, a.raw.Close())
		w.alice().Close()
		if got := w.observed.bugs; got != nil {
			w.Errorf("defects: %v", got)
		}
	})
}

// A connection that ends in the middle of the handshake is nothing that the server would report as authenticated.
func TestBrokenHandshakes(t *testing.T) {
	for cut := range 6 {
		t.Run(fmt.Sprintf("cut at %d", cut), func(t *testing.T) {
			inWorld(t, nil, func(w *world) { w.breakHandshake(cut) })
		})
	}
}

func (w *world) breakHandshake(cut int) {
	host, dpu := comchtest.NewPair(testMessage, comchtest.Cut(cut), comchtest.Faultless)
	w.serving.Go(func() { _ = w.server.Serve(w.ctx, Incoming{Conn: dpu, Memory: fixed(&bus{}), Side: wire.DPU}) })
	c, err := Connect(w.Context(), ClientConfig{Conn: host, Memory: fixed(&bus{}), Key: w.key, Verify: w.verify})
	if err == nil {
		must(w.T, c.Close())
		return
	}
	if !errors.Is(err, comch.ErrPeerLost) && !errors.Is(err, ErrTurnedAway) && !errors.Is(err, job.ErrIdle) {
		w.Error(err)
	}
	if w.happened("authenticated alice") == w.happened("refused") {
		w.Errorf("the events are %q", w.observed.events)
	}
	w.alice().Close()
}
