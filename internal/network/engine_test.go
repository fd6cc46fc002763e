package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const (
	testChunk = 64 << 10
	testDepth = 5
)

// eachPath runs a test on both paths that have data connections.
func eachPath(t *testing.T, run func(t *testing.T, path wire.Path)) {
	for _, path := range []wire.Path{wire.PathTLS, wire.PathTCP} {
		t.Run(path.String(), func(t *testing.T) { run(t, path) })
	}
}

// testLayout is that of a window with so many lanes.
func testLayout(path wire.Path, lanes int) window.Layout {
	return window.Layout{Path: path, Digest: digest.CRC32C, Chunk: testChunk, Depth: testDepth, Lanes: lanes}
}

// windows are both ends of a window on a path that has data connections.
type windows struct {
	sender, receiver *window.Window
}

// open opens a window for a copy in either direction, with as many lanes of each side.
func (m meeting) open(t testing.TB, path wire.Path, clientSends bool, senderLanes, receiverLanes int) windows {
	t.Helper()
	server := m.serverControl.Memory(m.server, m.serverControl.server.settings)
	client := m.clientControl.Memory(m.client, Settings{})
	from, to := server, client
	if clientSends {
		from, to = client, server
	}
	return openWindows(t, path, from, to, senderLanes, receiverLanes)
}

func openWindows(
	t testing.TB, path wire.Path, from, to window.Memory, senderLanes, receiverLanes int,
) windows {
	t.Helper()
	var w windows
	var err error
	w.receiver, err = to.Expose(patient(t), testLayout(path, receiverLanes))
	must(t, err)
	sends := testLayout(path, senderLanes)
	sends.Sends = true
	w.sender, err = from.Open(patient(t), sends, native.Window{
		Length: uint64(sends.Length()), Descriptor: w.receiver.Descriptor,
	})
	must(t, err)
	return w
}

func (w windows) close(t testing.TB) {
	t.Helper()
	must(t, w.sender.Close())
	must(t, w.receiver.Close())
}

// slots returns the sender's memory.
func (w windows) slots() []byte { return w.sender.Engines[0].(*sendEngine).slots }

// submit has an engine take a move.
func submit(t testing.TB, e pump.Engine, m pump.Move) {
	t.Helper()
	if n, err := e.Submit([]pump.Move{m}); n != 1 || err != nil {
		t.Fatalf("%d moves are taken: %v", n, err)
	}
}

// reap waits for one move.
func reap(t testing.TB, e pump.Engine) pump.Moved {
	t.Helper()
	var ended [1]pump.Moved
	n, err := e.Reap(patient(t), ended[:])
	if n != 1 || err != nil {
		t.Fatalf("%d moves have ended: %v", n, err)
	}
	must(t, ended[0].Err)
	return ended[0]
}

// Content arrives in any order of moves and frames, in both directions, also if the sides have different numbers of
// lanes.
func TestEngines(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		for _, clientSends := range []bool{true, false} {
			for _, lanes := range [][2]int{{1, 1}, {2, 2}, {2, 1}, {1, 3}, {5, 5}} {
				both := m.meet(t)
				w := both.open(t, path, clientSends, lanes[0], lanes[1])
				moveMany(t, w, lanes[0], lanes[1])
				w.close(t)
				both.close(t)
			}
		}
		m.mustBeEmpty(t)
	})
}

// A receiver counts the content of a chunk before all of it has arrived.
func TestIncompleteContentCounts(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		both := m.meet(t)
		w := both.open(t, path, true, 1, 1)
		const part = testChunk / 2
		l := w.sender.Engines[0].(*sendEngine).writers[0].lane
		begun := binary.BigEndian.AppendUint32(make([]byte, 4), testChunk) // to slot 0
		begun = append(begun, make([]byte, part)...)
		if path == wire.PathTCP {
			_, err := l.socket.tcp().Write(begun)
			must(t, err)
		} else {
			_, err := l.tls.Write(begun)
			must(t, errors.Join(err, l.socket.flush()))
		}
		for ctx := patient(t); w.receiver.Carried() < part && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
		}
		if got := w.receiver.Carried(); got != part {
			t.Errorf("%d bytes of %d have arrived", got, part)
		}
		must(t, errors.Join(w.receiver.Close(), w.sender.Close()))
		both.close(t)
	})
}

// A sender counts what the connection took of a frame before it failed.
func TestIncompleteFramesCount(t *testing.T) {
	for _, plain := range []bool{false, true} {
		const length = 8 << 20 // more than the sockets hold
		m := newMachines(t, nil)
		both := m.meet(t)
		w := both.open(t, wire.PathTLS, true, 1, 1)
		l := w.sender.Engines[0].(*sendEngine).writers[0].lane
		if plain {
			l.leaveTLS()
		}
		if l.writeFrame(1, make([]byte, length)) == nil { // which the receiver refuses
			t.Error("a frame of a wrong size was sent")
		}
		if got := w.sender.Carried(); got == 0 || got >= length {
			t.Errorf("%d bytes of %d are sent", got, length)
		}
		_ = errors.Join(w.receiver.Close(), w.sender.Close())
		both.close(t)
	}
}

func moveMany(t *testing.T, w windows, senderLanes, receiverLanes int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	slots := w.slots()
	for round := range 100 {
		slot := int64(random.IntN(testDepth))
		length := []int64{1, 100, testChunk - 1, testChunk}[random.IntN(4)]
		content := slots[slot*testChunk : slot*testChunk+length]
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		from := w.sender.Engines[int(slot)%senderLanes]
		lane := int(slot) % receiverLanes
		to := w.receiver.Engines[lane].(*receiveEngine)
		sent := pump.Move{Window: slot * testChunk, Buffer: slot * testChunk, Length: length, Tag: round}
		got := sent
		own := slot / int64(receiverLanes)
		got.Buffer = own * testChunk
		if round%3 == 0 {
			submit(t, to, got)
		}
		submit(t, from, sent)
		if moved := reap(t, from); moved.Tag != round {
			t.Errorf("tag %d, want %d", moved.Tag, round)
		}
		if round%3 != 0 {
			submit(t, to, got)
		}
		moved := reap(t, to)
		if moved.Tag != round {
			t.Errorf("%+v of %+v", moved, got)
		}
		if to.Inflight() != 0 || from.Inflight() != 0 {
			t.Error("a move is in flight")
		}
		if got := to.received[got.Buffer:][:length]; !bytes.Equal(got, content) {
			t.Errorf("round %d: the content of slot %d is not what was sent", round, slot)
		}
		to.Release(int(own))
	}
}

// A window that is opened again has connections of its own, over the same control connection.
func TestWindowsOneAfterTheOther(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		both := m.meet(t)
		defer both.close(t)
		server := both.serverControl.Memory(both.server, m.Listener.settings)
		client := both.clientControl.Memory(both.client, Settings{})
		for i := range 4 {
			from, to := client, server
			if i%2 == 1 {
				from, to = server, client
			}
			w := openWindows(t, path, from, to, 2, 2)
			moveMany(t, w, 2, 2)
			w.close(t)
		}
	})
}

// writeRaw sends bytes instead of frames.
func (l *lane) writeRaw(t *testing.T, bytes []byte) {
	t.Helper()
	if l.tls == nil {
		_, err := l.socket.tcp().Write(bytes)
		must(t, err)
		return
	}
	_, err := l.tls.Write(bytes)
	must(t, err)
	must(t, l.socket.flush())
}

// What breaks the rules of frames ends the lane with an error that says so.
func TestHostileSender(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		header := func(slot, length uint32) []byte {
			return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, slot), length)
		}
		frame := func(slot, length uint32) []byte { return append(header(slot, length), make([]byte, length)...) }
		for name, c := range map[string]struct {
			sent []byte
			text string
		}{
			"slot of another lane":  {frame(1, 10), "slot 1 is not one of lane 0"},
			"slot too large":        {frame(testDepth, 10), "slot 5 is not one of lane 0"},
			"largest slot":          {header(1<<32-1, 10), "slot 4294967295"},
			"nothing":               {header(0, 0), "0 bytes for a slot"},
			"too long":              {header(0, testChunk+1), "65537 bytes for a slot of 65536"},
			"largest length":        {header(0, 1<<32-1), "4294967295 bytes"},
			"another length":        {frame(0, 11), "11 bytes for a record of 10"},
			"twice before it moved": {append(frame(2, 10), frame(2, 10)...), "slot 2 twice"},
		} {
			t.Run(name, func(t *testing.T) {
				m := newMachines(t, nil)
				both := m.meet(t)
				defer both.close(t)
				w := both.open(t, path, true, 2, 2)
				writer := w.sender.Engines[0].(*sendEngine).writers[0]
				writer.lane.writeRaw(t, c.sent)
				to := w.receiver.Engines[0]
				_, err := to.Submit([]pump.Move{{Window: 0, Length: 10}})
				if err == nil {
					_, err = to.Reap(patient(t), make([]pump.Moved, 1))
				}
				if !errors.Is(err, wire.ErrMalformed) || !bytes.Contains([]byte(err.Error()), []byte(c.text)) {
					t.Errorf("got %v, want %q", err, c.text)
				}
				w.close(t)
			})
		}
	})
}

// A peer that is gone ends moves with comch.ErrPeerLost on both sides, after what had arrived before.
func TestLaneEnds(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		both := m.meet(t)
		defer both.close(t)
		w := both.open(t, path, true, 1, 1)
		from, to := w.sender.Engines[0], w.receiver.Engines[0]
		submit(t, from, pump.Move{Length: 10, Tag: 1})
		reap(t, from)
		must(t, from.(*sendEngine).writers[0].lane.Close())
		submit(t, from, pump.Move{Window: testChunk, Buffer: testChunk, Length: 10, Tag: 2})
		var ended [1]pump.Moved
		n, err := from.Reap(patient(t), ended[:])
		if n != 1 || err != nil || !errors.Is(ended[0].Err, comch.ErrPeerLost) {
			t.Errorf("the sender has %d moves: %+v, %v", n, ended, err)
		}
		submit(t, to, pump.Move{Length: 10, Tag: 1})
		reap(t, to)
		_, err = to.Submit([]pump.Move{{Window: testChunk, Buffer: testChunk, Length: 10, Tag: 2}})
		if err == nil { // the end of the connection was not read yet
			_, err = to.Reap(patient(t), ended[:])
		}
		if !errors.Is(err, comch.ErrPeerLost) {
			t.Errorf("the receiver has %v", err)
		}
		w.close(t)
	})
}

// What the lane uses itself is not overwritten, and not taken for content: a frame for such a slot breaks the protocol.
func TestOccupiedSlot(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, nil)
		both := m.meet(t)
		defer both.close(t)
		w := both.open(t, path, true, 1, 1)
		to := w.receiver.Engines[0].(*receiveEngine)
		must(t, to.Occupy(1))
		copy(to.received[testChunk:], "own")
		from := w.sender.Engines[0]
		for slot := range int64(2) {
			submit(t, from, pump.Move{Window: slot * testChunk, Buffer: slot * testChunk, Length: 3})
			reap(t, from)
		}
		submit(t, to, pump.Move{Length: 3})
		reap(t, to)
		if err := to.Occupy(0); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("a slot with content can be occupied: %v", err)
		}
		_, err := to.Submit([]pump.Move{{Window: testChunk, Buffer: testChunk, Length: 3}})
		if err == nil {
			_, err = to.Reap(patient(t), make([]pump.Moved, 1))
		}
		if !errors.Is(err, wire.ErrMalformed) || string(to.received[testChunk:][:3]) != "own" {
			t.Errorf("got %v, and %q", err, to.received[testChunk:][:3])
		}
		w.close(t)
	})
}

// Waits end with their context.
func TestReapEndsWithItsContext(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	w := both.open(t, wire.PathTLS, true, 1, 1)
	to := w.receiver.Engines[0]
	submit(t, to, pump.Move{Length: 10})
	if _, err := to.Reap(enough(t), make([]pump.Moved, 1)); !errors.Is(err, comchtest.ErrEnough) {
		t.Errorf("got %v", err)
	}
	w.close(t)
}

// enough returns a context that has ended because of comchtest.ErrEnough.
func enough(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(comchtest.ErrEnough)
	return ctx
}

// A peer that takes nothing delays neither a lane, whose wait ends with its context, nor Close.
func TestPeerTakesNothing(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, func(s *Settings) { s.buffers = 4 << 10 })
		both := m.meet(t)
		defer both.close(t)
		both.serverControl.Memory(both.server, m.Listener.settings)
		client := both.clientControl.Memory(both.client, m.settings)
		sends := testLayout(path, 1)
		sends.Sends, sends.Chunk = true, 8<<20
		w, err := client.Open(patient(t), sends, native.Window{Descriptor: native.AppendLanes(nil, 1, 7)})
		must(t, err)
		from := w.Engines[0]
		for slot := range int64(testDepth) {
			submit(t, from, pump.Move{Window: slot * sends.Chunk, Buffer: slot * sends.Chunk, Length: sends.Chunk})
		}
		if _, err := from.Reap(enough(t), make([]pump.Moved, 1)); !errors.Is(err, comchtest.ErrEnough) {
			t.Errorf("got %v", err)
		}
		must(t, w.Close())
	})
}

// What the socket does not take at once follows, in order and whole, from lanes that share a connection.
func TestFrameIsSentInParts(t *testing.T) {
	eachPath(t, func(t *testing.T, path wire.Path) {
		m := newMachines(t, func(s *Settings) { s.buffers = testChunk / 2 })
		both := m.meet(t)
		defer both.close(t)
		w := both.open(t, path, true, 2, 1)
		slots := w.slots()
		rand.NewChaCha8([32]byte{}).Read(slots)
		to := w.receiver.Engines[0].(*receiveEngine)
		for range 50 {
			for slot := range int64(testDepth) {
				all := pump.Move{Window: slot * testChunk, Buffer: slot * testChunk, Length: testChunk}
				submit(t, w.sender.Engines[slot%2], all)
				submit(t, to, all)
			}
			for slot := range testDepth {
				reap(t, w.sender.Engines[slot%2])
				reap(t, to)
			}
			if !bytes.Equal(to.received, slots) {
				t.Fatal("the content is not what was sent")
			}
			clear(to.received)
			for slot := range testDepth {
				to.Release(slot)
			}
		}
		w.close(t)
	})
}

// A sender that waits for connections which never come ends with its context; a receiver waits for the transfer's end.
func TestLanesThatDoNotCome(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	server := both.serverControl.Memory(both.server, m.Listener.settings)
	w, err := server.Expose(patient(t), testLayout(wire.PathTLS, 2))
	must(t, err)
	must(t, w.Close())
	sends := testLayout(wire.PathTLS, 1)
	sends.Sends = true
	_, err = server.Open(enough(t), sends, native.Window{Descriptor: native.AppendLanes(nil, 2, 7)})
	if !errors.Is(err, comchtest.ErrEnough) {
		t.Errorf("got %v", err)
	}
	if n := len(both.serverControl.session.Load().lanes); n != 0 {
		t.Errorf("%d connections are still awaited", n)
	}
}

// A sender does not wait for ever for connections that a client does not make, while the control connection goes on.
func TestLanesThatAreNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dataConnections{control: &Control{}, session: new(sessions).open(secret{}, newKey(t).Public())}
		l := testLayout(wire.PathTLS, 1)
		l.Sends = true
		_, err := d.Open(t.Context(), l, native.Window{Descriptor: native.AppendLanes(nil, 2, 7)})
		comchtest.MustBe(t, err, errNotMade)
	})
}
