//go:build cgo

package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// fastPair is a connection between two devices, with a window for the fast path from the host to the DPU.
type fastPair struct {
	t                *testing.T
	sender, receiver *doca.Device
	from, to         comch.Conn
	layout           Layout // of the sender
	sending, window  *Window
	consumers        []uint32
}

// newFastPair returns one whose sender has no end of the window yet.
func newFastPair(t *testing.T, lanes int) *fastPair {
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir()})
	must(t, err)
	p := &fastPair{t: t}
	p.open(driver)
	p.layout = Layout{
		Path: wire.PathFast, Sends: true, Digest: digest.CRC32C, Chunk: 4096, Depth: 5, Lanes: lanes,
	}
	mine := p.layout
	mine.Sends, mine.Buffers = false, 5
	p.window, err = NewMemory(p.receiver, wire.DPU, p.to).Expose(t.Context(), mine)
	must(t, err)
	p.consumers, err = native.ConsumerIDs(p.window.Descriptor, uint32(mine.Depth))
	must(t, err)
	return p
}

func (p *fastPair) open(driver *doca.Driver) {
	var err error
	p.sender, err = driver.OpenDevice("b1:00.1")
	must(p.t, err)
	p.receiver, err = driver.OpenDevice("03:00.1")
	must(p.t, err)
	rep, err := p.receiver.OpenRepresentor("b1:00.1")
	must(p.t, err)
	listener, err := comch.Listen(p.receiver, rep, reference.ServerName)
	must(p.t, err)
	dialed := make(chan error, 1)
	go func() {
		var err error
		p.from, err = comch.NewDialer(p.sender, reference.ServerName, comch.Within(time.Minute)).Dial(p.t.Context())
		dialed <- err
	}()
	p.to, err = listener.Accept(p.t.Context(), comch.Within(time.Minute))
	must(p.t, err)
	must(p.t, <-dialed)
	p.t.Cleanup(func() {
		for _, w := range []*Window{p.sending, p.window} {
			if w != nil {
				must(p.t, w.Close())
			}
		}
		for _, end := range []interface{ Close() error }{
			p.from, p.to, listener, rep, p.sender, p.receiver, driver,
		} {
			must(p.t, end.Close())
		}
	})
}

// openSender opens the sender's end.
func (p *fastPair) openSender() {
	p.t.Helper()
	var err error
	p.sending, err = NewMemory(p.sender, wire.Host, p.from).Open(p.t.Context(), p.layout, native.Window{
		Length: uint64(p.layout.Length()), Descriptor: p.window.Descriptor,
	})
	must(p.t, err)
}

// move makes one move with an engine and returns its end.
func move(t *testing.T, engine pump.Engine, m pump.Move) pump.Moved {
	t.Helper()
	n, err := engine.Submit([]pump.Move{m})
	must(t, err)
	if n != 1 {
		t.Fatalf("%d moves were accepted", n)
	}
	into := make([]pump.Moved, 1)
	n, err = engine.Reap(t.Context(), into)
	must(t, err)
	if n != 1 || engine.Inflight() != 0 {
		t.Fatalf("%d moves ended, %d are in flight", n, engine.Inflight())
	}
	return into[0]
}

// Each slot is used many times, in any order, by messages of any length, and each arrives whole and with its checksum.
func TestMovesOnTheFastPath(t *testing.T) {
	for _, lanes := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d lanes", lanes), func(t *testing.T) {
			p := newFastPair(t, lanes)
			p.openSender()
			random := rand.New(rand.NewPCG(1, uint64(lanes)))
			for round := range 40 {
				p.checkMove(random.IntN(p.layout.Depth), 1+random.Int64N(p.layout.Chunk), round)
			}
		})
	}
}

// checkMove sends a message through a slot.
func (p *fastPair) checkMove(slot int, length int64, round int) {
	p.t.Helper()
	lane := slot % p.layout.Lanes
	at, to := int64(slot)*p.layout.Chunk, int64(slot/p.layout.Lanes)*p.layout.Chunk
	content := bytes.Repeat([]byte{byte(round)}, int(length))
	from, into := p.sending.Engines[lane].(*producerEngine), p.window.Engines[lane].(*consumerEngine)
	copy(from.region.Bytes()[at:], content)
	sent := move(p.t, from, pump.Move{Window: at, Buffer: at, Length: length, Tag: round})
	got := move(p.t, into, pump.Move{Window: at, Buffer: to, Length: length, Tag: round})
	if sent.Tag != round || sent.Err != nil || got.Tag != round || got.Err != nil || !got.Checked ||
		got.Check != digest.Check(digest.CRC32C, content) || !bytes.Equal(into.matcher.buffers[to:to+length], content) {
		p.t.Fatalf("round %d: sent %+v, got %+v", round, sent, got)
	}
}

// A sender whose peer has closed its consumers has lost the peer, also before the control channel says so.
func TestConsumersAreGone(t *testing.T) {
	p := newFastPair(t, 1)
	p.openSender()
	must(t, p.window.Close()) // which the end of the test does again
	engine, m := p.sending.Engines[0], pump.Move{Length: 1}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := engine.Submit([]pump.Move{m})
	for err == nil {
		var ended [1]pump.Moved
		if _, err = engine.Reap(ctx, ended[:]); err == nil {
			err = ended[0].Err
		}
	}
	if !job.MayFollowLoss(err) || errors.Is(err, comch.ErrPeerLost) {
		t.Errorf("the connection is still open: %v", err)
	}
	mustBe(t, err, doca.CodeInvalidValue)
}

// Tasks that end with their connection are a lost peer on both sides, and no failure of the device.
func TestTasksOfAnEndedConnection(t *testing.T) {
	p := newFastPair(t, 1)
	p.openSender()
	receiver, sender := p.window.Engines[0].(*consumerEngine), p.sending.Engines[0].(*producerEngine)
	for _, code := range endedByLoss {
		mustBe(t, receiver.arrive(&doca.Received{Err: code}), comch.ErrPeerLost)
		var moved [1]pump.Moved
		sender.ended[0] = doca.Completion{Err: code}
		sender.take(1, moved[:])
		mustBe(t, moved[0].Err, comch.ErrPeerLost)
	}
	if err := receiver.arrive(&doca.Received{Err: doca.CodeIOFailed}); errors.Is(err, comch.ErrPeerLost) {
		t.Error(err)
	}
}

// A receiver that waits for a message gives up when its context ends.
func TestWaitForAMessageEnds(t *testing.T) {
	p := newFastPair(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.window.Engines[0].Submit([]pump.Move{{Length: 1}})
	must(t, err)
	cancel()
	_, err = p.window.Engines[0].Reap(ctx, make([]pump.Moved, 1))
	mustBe(t, err, context.Canceled)
}

// What a peer sends to the consumers is checked before it is used.
func TestHostileMessages(t *testing.T) {
	number := func(slot uint32) []byte { return binary.BigEndian.AppendUint32(nil, slot) }
	for name, test := range map[string]struct {
		immediate []byte
		length    int64
		times     int
	}{
		"no slot":               {nil, 16, 1},
		"half a number":         {[]byte{0, 0}, 16, 1},
		"no such slot":          {number(5), 16, 1},
		"a very large number":   {number(1<<32 - 1), 16, 1},
		"slot of another":       {number(1), 16, 1},
		"shorter than announed": {number(0), 15, 1},
		"longer than announced": {number(0), 17, 1},
		"no bytes":              {number(0), 0, 1},
		"a slot twice":          {number(2), 16, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFastPair(t, 2)
			must(t, comch.AwaitConsumers(t.Context(), p.from, p.from.(comch.FastPath), p.consumers))
			producer, err := p.from.(comch.FastPath).NewProducer(2)
			must(t, err)
			defer producer.Close()
			source, err := p.sender.Alloc(4096, doca.LocalRead)
			must(t, err)
			defer source.Close()
			for range test.times {
				hostile := doca.FastMessage{
					To: p.consumers[0], Source: source, Length: test.length, Immediate: test.immediate,
				}
				_, err := producer.SendWait(t.Context(), []doca.FastMessage{hostile})
				must(t, err)
				_, err = producer.Reap(t.Context(), make([]doca.Completion, 1))
				must(t, err)
			}
			engine := p.window.Engines[0]
			_, err = engine.Submit([]pump.Move{{Length: 16}})
			for err == nil {
				_, err = engine.Reap(t.Context(), make([]pump.Moved, 1))
			}
			mustBe(t, err, wire.ErrMalformed)
		})
	}
}

// A sender that learns of consumers which do not exist waits for them, until its peer is gone.
func TestAbsentConsumers(t *testing.T) {
	p := newFastPair(t, 1)
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = p.from.Recv(t.Context()) // the sender waits by now, or will find the connection ended
		_ = p.window.Close()            // which the end of the test does again
		_ = p.to.Close()
	}()
	must(t, p.to.Send(t.Context(), []byte{1}))
	_, err := NewMemory(p.sender, wire.Host, p.from).Open(t.Context(), p.layout, native.Window{
		Length: uint64(p.layout.Length()), Descriptor: native.AppendConsumers(nil, []uint32{4711}),
	})
	mustBe(t, err, comch.ErrPeerLost)
	<-left
}
