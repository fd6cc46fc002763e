package ucxpath

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
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
	b.window.Descriptor = negotiate.AppendWorkers(nil, negotiate.Workers{Addresses: [][]byte{address}, Key: key})
	b.progress(worker, func(ucx.Event) {}, func(error) {}) // the peer notices that its reads do not end
	return nil
}

// openMemory opens the window of a sender for a receiver on rma: each lane has a worker and buffers to read into.
func (b *builder) openMemory(ctx context.Context, from negotiate.Workers, address uint64) error {
	for range b.layout.Lanes {
		if err := b.addReader(ctx, from, address); err != nil {
			return err
		}
	}
	return nil
}

// errNoRead is a first read that has not ended in time.
var errNoRead = errors.New("timeout: the first read did not end")

// addReader adds a lane that reads, after it has shown that it can.
func (b *builder) addReader(ctx context.Context, from negotiate.Workers, address uint64) error {
	l := b.layout
	memory, err := b.alloc(int64(l.Buffers)*l.Chunk, ucx.LocalWrite)
	if err != nil {
		return err
	}
	worker, err := b.worker(l.Buffers)
	if err != nil {
		return err
	}
	endpoint, err := worker.Connect(from.Addresses[0], 0)
	if err != nil {
		return unreachable(err)
	}
	key, err := endpoint.ImportKey(from.Key)
	if err != nil {
		return unreachable(err)
	}
	reader := newEngine(worker, func(m pump.Move) error {
		return endpoint.Get(memory, m.Buffer, m.Length, address+uint64(m.Window), key, uint64(m.Tag))
	})
	ctx, cancel := context.WithTimeoutCause(ctx, b.reachTime, errNoRead)
	defer cancel()
	if err := firstRead(ctx, reader); err != nil {
		return err
	}
	b.window.Buffers = append(b.window.Buffers, pump.NewSlots(memory.Bytes(), l.Chunk))
	b.window.Engines = append(b.window.Engines, reader)
	b.window.Transport = endpoint.Transports()
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
func unreachable(err error) error { return fmt.Errorf("%w: %v", native.ErrUnreachable, err) }
