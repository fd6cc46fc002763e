package network

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// dataConnections makes the windows of the paths tls and tcp.
type dataConnections struct {
	control  *Control
	settings Settings
	named    secret
	session  *session    // of a server
	config   *tls.Config // of a client
}

func (c *Control) dataConnections(authenticated *secure.Conn, s Settings) (*dataConnections, error) {
	d := &dataConnections{control: c, settings: s}
	exported, err := authenticated.Export(secretPurpose, len(d.named))
	if err != nil {
		return nil, err
	}
	copy(d.named[:], exported)
	if c.server == nil {
		d.config = authenticated.DataClient()
		return d, nil
	}
	d.session = c.server.sessions.open(d.named, authenticated.Peer())
	c.session.Store(d.session)
	if c.closed.Load() { // meanwhile
		d.session.close()
	}
	return d, nil
}

// Usable implements dataPath.
func (*dataConnections) Usable() error { return nil }

// Traits implements dataPath.
func (*dataConnections) Traits() window.Traits {
	return window.Traits{Lanes: wire.MaxLanes, Sizes: sizes}
}

// sizes are the sizes of a window. A message between two chunks may be a change of thread on both sides, and the slots
// of each side are at least a huge page.
var sizes = window.Sizes{Smallest: 512 << 10, Largest: 2 << 20, Chunks: 32, Depth: 4}

// Overhead returns the bytes of the buffers of the data connections. The receiver chooses their number. Without TLS
// they have none.
func (*dataConnections) Overhead(l window.Layout, peer native.Window) int64 {
	if l.Path == wire.PathTCP {
		return 0
	}
	if !l.Sends {
		return int64(l.Lanes) * (readAtOnce + tlsBuffers)
	}
	count, _, err := native.Lanes(peer.Descriptor, uint32(l.Depth))
	if err != nil {
		return 0 // Open fails
	}
	return int64(count) * (writeAtOnce + tlsBuffers)
}

// lane returns a data connection: a client makes it, and a server waits for it.
func (d *dataConnections) lane(ctx context.Context, id laneID) (*lane, error) {
	if d.session == nil {
		return d.control.dialLane(ctx, &d.settings, d.config, d.named, id)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, helloTime, errNotMade)
	defer cancel()
	return d.session.take(ctx, id)
}

// errNotMade is a client that has offered a window and does not make the connections of it, or whose connections do not
// arrive.
var errNotMade = fmt.Errorf("%w: the client did not make a data connection within %s", comch.ErrPeerLost, helloTime)

// dial returns the data connections of a window, which are made at the same time.
func (d *dataConnections) dial(ctx context.Context, window uint64, count int) ([]*lane, error) {
	dialed := make([]*lane, count)
	dials, ctx := errgroup.WithContext(ctx)
	for i := range dialed {
		dials.Go(func() (err error) {
			defer job.Recover(&err)
			dialed[i], err = d.lane(ctx, laneID{window, uint8(i)})
			return err
		})
	}
	err := dials.Wait()
	if err != nil {
		closeAll(dialed)
		return nil, err
	}
	return dialed, nil
}

// closeAll closes those data connections that have been made.
func closeAll(dialed []*lane) {
	for _, l := range dialed {
		if l != nil {
			_ = l.Close()
		}
	}
}

// newWindow returns the number of a new window: the peer must not be able to take one for another.
func newWindow() uint64 {
	var number [8]byte
	_, _ = rand.Read(number[:]) // which does not fail
	return binary.BigEndian.Uint64(number[:])
}

// Expose makes the window of a receiver.
func (d *dataConnections) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	memory, err := newSlotMemory(l.Length())
	if err != nil {
		return nil, err
	}
	number := newWindow()
	dialed := make([]*lane, l.Lanes) // of a server nil: they are awaited later
	if d.session == nil {
		if dialed, err = d.dial(ctx, number, l.Lanes); err != nil {
			return nil, errors.Join(err, memory.Close())
		}
	}
	w := &window.Window{Descriptor: native.AppendLanes(nil, l.Lanes, number)}
	w.AddCloser(memory)
	var engines []*receiveEngine
	rest := memory
	for i, opened := range dialed {
		of := int64(l.LaneSlots(i)) * l.Chunk
		engine := newReceiveEngine(l, i, rest[:of:of], &d.settings)
		rest = rest[of:]
		engine.start(func(ctx context.Context) (*lane, error) {
			if opened != nil {
				return opened, nil
			}
			return d.session.take(ctx, laneID{number, uint8(i)})
		})
		w.AddCloser(engine)
		w.Buffers = append(w.Buffers, pump.NewSlots(engine.received, l.Chunk))
		w.Engines, w.InPlace = append(w.Engines, engine), append(w.InPlace, engine)
		engines = append(engines, engine)
	}
	w.Ended = func() bool { return slices.ContainsFunc(engines, (*receiveEngine).hasEnded) }
	w.Carried = func() (bytes int64) {
		for _, e := range engines {
			bytes += e.arrived.Load()
		}
		return bytes
	}
	return w, nil
}

// Open opens the window of the receiver, for a sender.
func (d *dataConnections) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	count, number, err := native.Lanes(of.Descriptor, uint32(l.Depth))
	if err != nil {
		return nil, err
	}
	opened, err := d.dial(ctx, number, count)
	if err != nil {
		return nil, err
	}
	slots, err := newSlotMemory(l.Length())
	if err != nil {
		closeAll(opened)
		return nil, err
	}
	w := &window.Window{Slots: pump.NewSlots(slots, l.Chunk)}
	w.AddCloser(slots)
	writers := make([]*writer, count)
	for i, each := range opened {
		if l.Path == wire.PathTCP {
			each.leaveTLS()
		}
		writers[i] = newWriter(each, l.Depth)
		w.AddCloser(writers[i])
	}
	w.Carried = func() (bytes int64) {
		for _, l := range opened {
			bytes += l.sent.Load()
		}
		return bytes
	}
	for range l.Lanes {
		w.Engines = append(w.Engines, newSendEngine(writers, slots, l))
	}
	return w, nil
}
