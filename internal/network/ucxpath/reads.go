package ucxpath

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// exposeMemory makes the window of a sender on rma: memory that the peer may read, and a worker that it connects to.
func exposeMemory(b *builder) error {
	l := b.layout
	memory, err := b.alloc(l.Length(), ucx.RemoteRead)
	if err != nil {
		return err
	}
	key, err := memory.RemoteKey()
	if err != nil {
		return fmt.Errorf("exporting the window: %w", err)
	}
	worker, err := b.worker(1)
	if err != nil {
		return err
	}
	address, err := worker.Address()
	if err != nil {
		return fmt.Errorf("exporting the window: %w", err)
	}
	b.window.Slots, b.window.Address = pump.NewSlots(memory.Bytes(), l.Chunk), memory.Address()
	b.window.Descriptor = native.AppendWorkers(nil, native.Workers{Addresses: [][]byte{address}, Key: key})
	b.progress(worker, func(ucx.Event) {}, func(error) {}) // the peer notices that its reads do not end
	return nil
}

// openMemory opens the window of a sender for a receiver on rma. Each lane has buffers, and a worker to read into them
// with. Where this process can map the window, lanes copy from there without workers: with the checksum in one pass.
func (b *builder) openMemory(ctx context.Context, from native.Workers, address uint64) error {
	for lane := range b.layout.Lanes {
		s, err := b.connect(from)
		if err != nil {
			return err
		}
		if lane == 0 {
			mapped, err := s.key.Map(address, b.layout.Length())
			if errors.Is(err, ucx.ErrInvalid) {
				return &wire.Error{Err: wire.ErrMalformed, Detail: fmt.Sprintf("the window: %v", err)}
			}
			if err != nil {
				return err
			}
			if mapped != nil {
				b.copyFrom(mapped)
				b.window.Transport = s.endpoint.Transports()
				return nil
			}
		}
		if err := b.addReader(ctx, s, address); err != nil {
			return err
		}
	}
	return nil
}

// copyFrom gives each lane buffers, into which it copies from the mapped window of the sender.
func (b *builder) copyFrom(mapped []byte) {
	copying := window.NewHostWindow(b.layout, mapped)
	b.window.Buffers, b.window.Engines = copying.Buffers, copying.Engines
}

// source is a sender's window, as a worker of the receiver reaches it.
type source struct {
	worker   *ucx.Worker
	endpoint *ucx.Endpoint
	key      *ucx.RemoteKey
}

func (b *builder) connect(to native.Workers) (source, error) {
	worker, err := b.worker(b.layout.Buffers)
	if err != nil {
		return source{}, err
	}
	endpoint, err := worker.Connect(to.Addresses[0], 0)
	if err != nil {
		return source{}, unreachable(err)
	}
	key, err := endpoint.ImportKey(to.Key)
	if err != nil {
		return source{}, unreachable(err)
	}
	return source{worker, endpoint, key}, nil
}

// errNoRead is a first read that has not ended in time.
var errNoRead = errors.New("timeout: the first read did not end")

// addReader adds a lane that reads, after it has shown that it can.
func (b *builder) addReader(ctx context.Context, from source, address uint64) error {
	l := b.layout
	memory, err := b.alloc(int64(l.Buffers)*l.Chunk, ucx.LocalWrite)
	if err != nil {
		return err
	}
	reader := newEngine(from.worker, func(m pump.Move) error {
		return from.endpoint.Get(memory, m.Buffer, m.Length, address+uint64(m.Window), from.key, uint64(m.Tag))
	})
	ctx, cancel := context.WithTimeoutCause(ctx, b.reachTime, errNoRead)
	defer cancel()
	if err := firstRead(ctx, reader); err != nil {
		return err
	}
	b.window.Buffers = append(b.window.Buffers, pump.NewSlots(memory.Bytes(), l.Chunk))
	b.window.Engines = append(b.window.Engines, reader)
	b.window.Transport = from.endpoint.Transports()
	return nil
}

// firstRead reads one byte of the window, since UCX connects with the first operation only.
func firstRead(ctx context.Context, reader *engine) error {
	if _, err := reader.Submit([]pump.Move{{Length: 1}}); err != nil {
		return unreachable(err)
	}
	var moved [1]pump.Moved
	_, err := reader.Reap(ctx, moved[:])
	switch {
	case errors.Is(err, errNoRead), moved[0].Err != nil:
		return unreachable(errors.Join(err, moved[0].Err))
	case err != nil:
		return err
	}
	return nil
}

// unreachable returns the error for a window that cannot be read or written from here. It does not mean that the peer
// is gone, which the control connection tells.
func unreachable(err error) error { return fmt.Errorf("%w: %v", window.ErrUnreachable, err) }
