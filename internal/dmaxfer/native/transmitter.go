package native

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// transmitter sends what the lanes of a sender have for the receiver. The lanes add to box, the owner of the transfer
// calls flush.
type transmitter struct {
	*common
	entries     *sentEntries
	acknowledge func([]negotiate.Ack) // frees the slot of a unit that is not sent
	box         *pump.Batch[pump.Announcement]
	records     []negotiate.Record
	ended       bool // the end of a file has been sent
}

func newTransmitter(c *common, e *sentEntries) *transmitter {
	return &transmitter{
		common: c, entries: e,
		box:     pump.NewBatch[pump.Announcement](2*int(c.terms.plan.Depth), c.terms.batch()),
		records: make([]negotiate.Record, 0, negotiate.MaxRecords(cap(c.message))),
	}
}

// flush sends everything in its order.
func (t *transmitter) flush(ctx context.Context) error {
	t.records = t.records[:0]
	for _, a := range t.box.Take() {
		var err error
		switch {
		case a.End != nil:
			err = t.sendEnd(ctx, a.End)
		case withdraw(a.Unit):
			t.acknowledge([]negotiate.Ack{{Slot: uint32(a.Unit.Record.Slot)}})
		case a.Unit.Packed():
			err = t.sendPack(ctx, a.Unit)
		default:
			t.records = append(t.records, a.Unit.Record)
			if len(t.records) == cap(t.records) {
				err = t.sendChunks(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return t.sendChunks(ctx)
}

func (t *transmitter) sendChunks(ctx context.Context) error {
	if len(t.records) == 0 {
		return nil
	}
	message, err := t.session.Chunks(t.message, t.records)
	if err != nil {
		return err
	}
	t.records = t.records[:0]
	return t.link.send(ctx, message)
}

func (t *transmitter) sendPack(ctx context.Context, unit *pump.Unit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := t.session.Pack(t.message, unit.Pack)
	if err != nil {
		return err
	}
	if unit.Pack.Attempt == 0 {
		for _, o := range unit.Ref.([]*outgoing) {
			t.entries.ended(o)
		}
	}
	return t.sendWhole(ctx, message)
}

func (t *transmitter) sendEnd(ctx context.Context, end *pump.End) error {
	o := t.entries.entry(end.Entry)
	if o == nil {
		return nil // it has been decided meanwhile
	}
	if err := t.sendChunks(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := t.session.End(t.message, end.Entry, uint64(end.Size), end.Sum.Bytes())
	if err != nil {
		return err
	}
	t.entries.ended(o)
	t.ended = true
	return t.sendWhole(ctx, message)
}

// sendWhole sends a message after which the receiver may commit. If it were interrupted it would not be known whether
// it was sent.
func (t *transmitter) sendWhole(ctx context.Context, message []byte) error {
	return t.link.send(context.WithoutCancel(ctx), message)
}
